// The cases of collectives_test.cc over TCP on 127.0.0.1, plain and over TLS.
#include <gtest/gtest.h>

#include "execute/comm/testing/collective_cases.h"
#include "execute/comm/testing/tested_transports.h"

namespace systole {
namespace {

class TcpCollectives : public testing::TestWithParam<bool> {
 protected:
  MakeRanks over_tcp() {
    return [this](std::int32_t n) { return ranks_.connect(n, Seconds(20.0)); };
  }

 private:
  TcpRanks ranks_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Over, TcpCollectives, testing::Bool(),
                         [](const auto& one) { return std::string(one.param ? "tls" : "tcp"); });

TEST_P(TcpCollectives, every_kind_algorithm_and_dim_is_as_defined) {
  for (const char* text : {"data=2", "data=3"}) {
    const Mesh mesh = Mesh::parse(text).value();
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const CollectiveCall& call : calls_on(mesh, "data", dtype)) {
        if (carries_out(call)) expect_defined(call, mesh, over_tcp());
      }
    }
  }
}

TEST_P(TcpCollectives, over_several_axes_and_long) {
  const Mesh mesh = Mesh::parse("data=2 model=2").value();
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
        CollectiveKind::all_to_all, CollectiveKind::collective_permute}) {
    for (const CollectiveAlgorithm algorithm : algorithms_of(kind)) {
      const CollectiveCall call{kind, "data,model", 4, DType::f32, {5, 8, 4001}, 1, 1, 2, false, algorithm};
      expect_defined(call, mesh, over_tcp());
    }
  }
}

TEST_P(TcpCollectives, many_at_once_beside_other_work) {
  const Mesh mesh = Mesh::parse("data=3").value();
  std::vector<CollectiveCall> calls;
  for (const CollectiveCall& call : calls_on(mesh, "data", DType::f32)) calls.push_back(call);
  calls.push_back({CollectiveKind::all_gather, "data", 3, DType::f32, {400'000}});
  expect_defined_beside_others(calls, mesh, over_tcp());
}

}  // namespace
}  // namespace systole
