// The cases of collectives_test.cc over TCP on 127.0.0.1.
#include <gtest/gtest.h>

#include <thread>

#include "execute/comm/tcp_transport.h"
#include "execute/comm/testing/collective_cases.h"
#include "ground/net/rendezvous_server.h"

namespace systole {
namespace {

class TcpCollectives : public testing::Test {
 protected:
  MakeRanks over_tcp() {
    return [this](std::int32_t n) {
      EXPECT_TRUE(client().erase("tcp/").ok());
      std::vector<std::unique_ptr<Transport>> transports(static_cast<std::size_t>(n));
      std::vector<std::jthread> threads;
      for (std::int32_t r = 0; r < n; ++r) {
        threads.emplace_back([this, r, n, &transports] {
          RendezvousClient rendezvous = client();
          transports[static_cast<std::size_t>(r)] = tcp_transport(rendezvous, r, n).value();
        });
      }
      threads.clear();
      return transports;
    };
  }

 private:
  RendezvousClient client() { return RendezvousClient::connect(server_->address(), token_).value(); }
  RunToken token_ = RunToken::make().value();
  std::unique_ptr<RendezvousServer> server_ = RendezvousServer::start(token_).value();
};

TEST_F(TcpCollectives, every_kind_algorithm_and_dim_is_as_defined) {
  for (const char* text : {"data=2", "data=3"}) {
    const Mesh mesh = Mesh::parse(text).value();
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const CollectiveCall& call : calls_on(mesh, "data", dtype)) {
        if (carries_out(call)) expect_defined(call, mesh, over_tcp());
      }
    }
  }
}

TEST_F(TcpCollectives, over_several_axes_and_long) {
  const Mesh mesh = Mesh::parse("data=2 model=2").value();
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                    CollectiveKind::all_gather, CollectiveKind::all_to_all}) {
    for (const CollectiveAlgorithm algorithm : algorithms_of(kind)) {
      const CollectiveCall call{kind, "data,model", 4, DType::f32, {5, 8, 4001}, 1, 1, 2, false, algorithm};
      expect_defined(call, mesh, over_tcp());
    }
  }
}

TEST_F(TcpCollectives, many_at_once_beside_other_work) {
  const Mesh mesh = Mesh::parse("data=3").value();
  std::vector<CollectiveCall> calls;
  for (const CollectiveCall& call : calls_on(mesh, "data", DType::f32)) calls.push_back(call);
  calls.push_back({CollectiveKind::all_gather, "data", 3, DType::f32, {400'000}});
  expect_defined_beside_others(calls, mesh, over_tcp());
}

}  // namespace
}  // namespace systole
