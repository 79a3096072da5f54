// Every kind × algorithm × number of ranks × dtype × dim compared with the definition in f64, on threads; and the law
// that the transport writes as many bytes as the transfers state.
#include "execute/comm/collectives.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>

#include "execute/comm/ring_transport.h"
#include "execute/comm/testing/collective_cases.h"
#include "ground/mesh/collective.h"

namespace systole {
namespace {

using Bits = std::vector<std::byte>;
const MakeRanks kLoopback = ranks_over_loopback();
const std::vector<std::string> kMeshes{"data=2", "data=3", "data=4", "data=5", "data=8"};

TEST(Collectives, every_kind_algorithm_and_dim_is_as_defined) {
  for (const std::string& text : kMeshes) {
    const Mesh mesh = Mesh::parse(text).value();
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const CollectiveCall& call : calls_on(mesh, "data", dtype)) {
        if (carries_out(call)) expect_defined(call, mesh, kLoopback);
      }
    }
  }
}

TEST(Collectives, every_dtype_sums_and_finds_the_largest) {
  const Mesh mesh = Mesh::parse("data=3").value();
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i8, DType::i32, DType::i64,
                            DType::u8, DType::u32, DType::u64}) {
    for (const bool maximum : {false, true}) {
      for (CollectiveCall call : calls_on(mesh, "data", dtype)) {
        call.maximum = maximum;
        if (call.reduces() && carries_out(call)) expect_defined(call, mesh, kLoopback);
      }
    }
  }
  for (const DType dtype : {DType::boolean, DType::f8e4m3, DType::f8e5m2}) {  // moved, not summed
    CollectiveCall call{CollectiveKind::all_gather, "data", 3, dtype, {2, 3}, 1};
    expect_defined(call, mesh, kLoopback);
    call.kind = CollectiveKind::all_reduce;
    on_ranks(mesh, kLoopback, [&](std::int32_t, Communicator& communicator, Transport&) {
      Bits x(6);
      EXPECT_EQ(communicator.prepare(call, x.data(), x.data(), nullptr).error().kind, ErrorKind::unsupported);
    });
  }
}

TEST(Collectives, in_the_operands_place) {
  for (const std::string& text : kMeshes) {
    const Mesh mesh = Mesh::parse(text).value();
    for (const DType dtype : {DType::f32, DType::bf16, DType::i64}) {
      for (const CollectiveCall& call : calls_on(mesh, "data", dtype)) {
        if (call.kind == CollectiveKind::all_reduce && carries_out(call)) expect_defined(call, mesh, kLoopback, true);
      }
    }
  }
}

TEST(Collectives, over_one_axis_and_over_several) {
  for (const char* text : {"data=2 model=2", "data=2 model=3", "data=2 seq=1 model=4", "data=2 model=2 seq=2"}) {
    const Mesh mesh = Mesh::parse(text).value();
    for (const char* axis : {"data", "model", "data,model", "model,data"}) {
      for (const CollectiveCall& call : calls_on(mesh, axis, DType::f32)) expect_defined(call, mesh, kLoopback);
    }
  }
}

// Messages longer than a ring travel in many pieces, at odd offsets. Unless SYSTOLE_TEST_LONG=1, each call runs on one
// in four of the meshes and dtypes; each ring size still gets at least two.
TEST(Collectives, messages_longer_than_their_rings) {
  const bool all = std::getenv("SYSTOLE_TEST_LONG") != nullptr;
  const DType dtypes[] = {DType::f32, DType::bf16};
  for (std::size_t m = 0; m < kMeshes.size(); ++m) {
    const Mesh mesh = Mesh::parse(kMeshes[m]).value();
    for (const std::int64_t ring_bytes : {256, 1024}) {
      for (std::size_t d = 0; d < std::size(dtypes); ++d) {
        const std::vector<CollectiveCall> calls = calls_on(mesh, "data", dtypes[d]);
        for (std::size_t c = 0; c < calls.size(); ++c) {
          CollectiveCall call = calls[c];
          if (call.dim == 2 || (!all && (m + d + c) % 4 != 0)) continue;
          if (call.kind != CollectiveKind::all_reduce || call.shape.size() == 3) call.shape[1] = 31;
          if (carries_out(call)) expect_defined(call, mesh, ranks_over_loopback(ring_bytes));
        }
      }
    }
  }
}

// Far more ranks than cores, and several axes.
TEST(Collectives, many_ranks) {
  const Mesh mesh = Mesh::parse("data=3 model=11").value();
  for (const CollectiveCall& call :
       {CollectiveCall{CollectiveKind::all_reduce, "data,model", 33, DType::f32, {1000}},
        CollectiveCall{CollectiveKind::all_gather, "model", 11, DType::bf16, {3, 5}, 1},
        CollectiveCall{CollectiveKind::reduce_scatter, "data", 3, DType::i32, {7, 6}, 1}}) {
    for (const CollectiveAlgorithm algorithm : algorithms_of(call.kind)) {
      CollectiveCall by = call;
      by.algorithm = algorithm;
      expect_defined(by, mesh, ranks_over_loopback(1024));
    }
  }
}

// The sum of 8 bf16 equals the f64 sum rounded once; a sum that rounds at each step differs.
TEST(Collectives, sums_of_bf16_are_rounded_once) {
  const Mesh mesh = Mesh::parse("data=8").value();
  const CollectiveCall call{CollectiveKind::all_reduce, "data", 8, DType::bf16, {4096}};
  const auto value = [](std::int64_t rank, std::int64_t i) {
    return rounded(DType::bf16, std::sin(static_cast<double>(i * 8 + rank)) * (1 + static_cast<double>(i % 5)));
  };
  Bits want(4096 * 2);
  std::int64_t unlike = 0;  // differs from the sum that rounds at each step
  for (std::int64_t i = 0; i < 4096; ++i) {
    double sum = 0, rough = 0;
    for (std::int64_t r = 0; r < 8; ++r) sum += value(r, i), rough = rounded(DType::bf16, rough + value(r, i));
    store(DType::bf16, want.data(), i, sum);
    unlike += rough != rounded(DType::bf16, sum) ? 1 : 0;
  }
  EXPECT_GT(unlike, 1000);
  on_ranks(mesh, kLoopback, [&](std::int32_t rank, Communicator& communicator, Transport&) {
    Bits x(want.size()), workspace(static_cast<std::size_t>(collective_workspace(call).count()));
    for (std::int64_t i = 0; i < 4096; ++i) store(DType::bf16, x.data(), i, value(rank, i));
    const auto prepared = communicator.prepare(call, x.data(), x.data(), workspace.data()).value();
    WorkCounters counters;
    ASSERT_TRUE(communicator.run(*prepared, counters).ok());
    EXPECT_EQ(x, want);
  });
}

TEST(Collectives, algorithms_that_round_twice_are_refused) {
  const Mesh mesh = Mesh::parse("data=4").value();
  on_ranks(mesh, kLoopback, [&](std::int32_t, Communicator& communicator, Transport&) {
    Bits x(64);
    CollectiveCall call{CollectiveKind::all_reduce, "data", 4, DType::bf16, {8}};
    call.algorithm = CollectiveAlgorithm::ring;
    const auto refused = communicator.prepare(call, x.data(), x.data(), nullptr);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::unsupported);
    EXPECT_NE(refused.error().hint.find("direct"), std::string::npos);
    call.maximum = true;  // max is exact
    EXPECT_TRUE(communicator.prepare(call, x.data(), x.data(), nullptr).ok());
    call.axis = "dta";
    EXPECT_EQ(communicator.prepare(call, x.data(), x.data(), nullptr).error().kind, ErrorKind::not_found);
  });
}

// All ranks hold the same bits in every run: the order of a sum does not depend on arrival order.
TEST(Collectives, a_sum_is_the_same_bits_everywhere_and_always) {
  const Mesh mesh = Mesh::parse("data=5").value();
  for (const CollectiveAlgorithm algorithm : algorithms_of(CollectiveKind::all_reduce)) {
    std::vector<Bits> results(5 * 20);
    on_ranks(mesh, kLoopback, [&](std::int32_t rank, Communicator& communicator, Transport&) {
      std::vector<float> x(1001);
      const CollectiveCall call{CollectiveKind::all_reduce, "data", 5, DType::f32, {1001}, 0, 0, 0, false, algorithm};
      auto* bytes = reinterpret_cast<std::byte*>(x.data());
      const auto prepared = communicator.prepare(call, bytes, bytes, nullptr).value();
      for (std::size_t time = 0; time < 20; ++time) {
        for (std::size_t i = 0; i < x.size(); ++i)
          x[i] = std::sin(static_cast<float>(i * 5 + static_cast<std::size_t>(rank)));
        WorkCounters counters;
        ASSERT_TRUE(communicator.run(*prepared, counters).ok());
        results[static_cast<std::size_t>(rank) * 20 + time] = Bits(bytes, bytes + x.size() * 4);
      }
    });
    for (const Bits& result : results) ASSERT_EQ(result, results[0]) << name_of(algorithm);
  }
}

// Writes every message twice; the second copy is useless.
class SendsTwice : public Transport {
 public:
  explicit SendsTwice(Transport& once) : once_(once) {}
  std::int32_t rank() const override { return once_.rank(); }
  std::int32_t num_ranks() const override { return once_.num_ranks(); }
  const char* name() const override { return "twice"; }
  void abort(const std::string& why) override { once_.abort(why); }
  Bytes bytes_written() const override { return once_.bytes_written(); }
  void observe(WaitObserver* observer) override { once_.observe(observer); }
  Status begin(const Exchange& exchange) override {
    exchange_ = exchange;
    again_ = false;
    return once_.begin(exchange);
  }
  Result<bool> advance(bool wait) override {
    if (!TRY(once_.advance(wait))) return false;
    if (again_) return true;
    again_ = true;
    in_.assign(exchange_.in.begin(), exchange_.in.end());
    nowhere_.clear();
    for (Incoming& in : in_) {
      nowhere_.emplace_back(static_cast<std::size_t>(in.bytes.count()));
      in.into = nowhere_.back().data(), in.row = in.stride = in.bytes, in.combine = nullptr;
    }
    TRY(once_.begin({exchange_.stamp, exchange_.out, in_}));
    return once_.advance(wait);
  }

 private:
  Transport& once_;
  Exchange exchange_;
  bool again_ = false;
  std::vector<Incoming> in_;
  std::vector<Bits> nowhere_;
};

TEST(Collectives, a_transport_that_sends_twice_is_seen) {
  const Mesh mesh = Mesh::parse("data=3").value();
  const CollectiveCall call{CollectiveKind::all_reduce, "data", 3, DType::f32, {30}};
  const auto transfers = transfers_of(collective_on(call, mesh).value(), call.algorithm).value();
  on_ranks(mesh, kLoopback, [&](std::int32_t rank, Communicator&, Transport& transport) {
    SendsTwice twice(transport);
    const auto communicator = make_communicator(twice, mesh).value();
    Bits x(120);
    const auto prepared = communicator->prepare(call, x.data(), x.data(), nullptr).value();
    WorkCounters counters;
    ASSERT_TRUE(communicator->run(*prepared, counters).ok());
    EXPECT_EQ(counters.bytes_sent, 2 * bytes_sent(transfers, rank).count());
  });
}

TEST(Collectives, many_at_once_beside_other_work_are_as_defined) {
  const Mesh mesh = Mesh::parse("data=2 model=2").value();
  std::vector<CollectiveCall> calls;
  for (const char* axis : {"data", "data,model", "model"}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const CollectiveCall& call : calls_on(mesh, axis, dtype)) {
        if (carries_out(call)) calls.push_back(call);
      }
    }
  }
  expect_defined_beside_others(calls, mesh, ranks_over_loopback());
  if (std::getenv("SYSTOLE_TEST_LONG") == nullptr) {  // one in five
    std::vector<CollectiveCall> some;
    for (std::size_t i = 0; i < calls.size(); i += 5) some.push_back(calls[i]);
    calls = std::move(some);
  }
  expect_defined_beside_others(calls, mesh, ranks_over_loopback(256));
}

// One rank computes and never progresses. The other names it, within the patience of its wait.
TEST(Collectives, a_rank_lost_beside_other_work_is_named) {
  const Mesh mesh = Mesh::parse("data=2").value();
  const auto transports = loopback(2, {Seconds(0.3)}).value();
  const CollectiveCall call{CollectiveKind::all_gather, "data", 2, DType::f32, {1 << 20}};
  std::vector<std::byte> from(4 << 20), into(8 << 20), other(8 << 20);
  const auto first = make_communicator(*transports[0], mesh).value(),
             second = make_communicator(*transports[1], mesh).value();
  const auto sent = first->prepare(call, from.data(), into.data(), nullptr).value(),
             begun = second->prepare(call, from.data(), other.data(), nullptr).value();
  ASSERT_TRUE(first->start(*sent).ok());
  ASSERT_TRUE(second->start(*begun).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(first->progress().ok());
  WorkCounters counters;
  const auto began = std::chrono::steady_clock::now();
  const Status waited = first->finish(nullptr, counters);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));
  ASSERT_FALSE(waited.ok());
  EXPECT_NE(waited.error().message.find("for rank 1"), std::string::npos) << waited.error().message;
  EXPECT_NE(waited.error().message.find("all_gather #0"), std::string::npos) << waited.error().message;
  EXPECT_GT(counters.bytes_sent, 0);
  // The other rank gets the error at its next progress().
  EXPECT_FALSE(second->progress().ok());
}

TEST(Collectives, an_observer_is_told_of_each_run) {
  struct Told : CollectiveObserver {
    void begin(const ObservedCollective& seen) override {
      text += fmt::format("{} {}", seen.call->axis, seen.sequence);
    }
    void end(const ObservedCollective&, bool ok, Bytes sent) override {
      text += fmt::format(" {} {}; ", ok, sent.count());
    }
    std::string text;
  };
  const Mesh mesh = Mesh::parse("data=2 model=2").value();
  on_ranks(mesh, kLoopback, [&](std::int32_t, Communicator& communicator, Transport&) {
    Bits x(48);
    WorkCounters counters;
    Told told;
    communicator.observe(&told);
    for (const char* axis : {"data", "model", "data"}) {
      const CollectiveCall call{CollectiveKind::all_reduce, axis, 2, DType::f32, {12}};
      ASSERT_TRUE(communicator.run(*communicator.prepare(call, x.data(), x.data(), nullptr).value(), counters).ok());
    }
    EXPECT_EQ(told.text, "data 0 true 48; model 0 true 48; data 1 true 48; ");
  });
}

TEST(Collectives, barrier_and_broadcast_of_hosts) {
  const Mesh mesh = Mesh::parse("data=2 model=2").value();
  std::atomic<int> came = 0;
  on_ranks(mesh, kLoopback, [&](std::int32_t rank, Communicator& communicator, Transport&) {
    for (int round = 1; round <= 50; ++round) {
      ++came;
      ASSERT_TRUE(communicator.barrier().ok());
      EXPECT_GE(came.load(), 4 * round);
      for (std::int32_t root = 0; root < 4; ++root) {
        std::array<std::byte, 3> word{std::byte(rank), std::byte(round), std::byte{9}};
        ASSERT_TRUE(communicator.broadcast(word, root).ok());
        EXPECT_EQ(word[0], std::byte(root));
      }
    }
  });
}

TEST(Collectives, a_mesh_of_another_size_is_refused) {
  auto transports = loopback(2).value();
  const auto refused = make_communicator(*transports[0], Mesh::parse("data=4").value());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("2 ranks for the 4 devices"), std::string::npos);
}

// A transfer carries its identity: a wrong one of the same length is refused, and both are named.
TEST(Collectives, transfers_that_are_mixed_up_are_named) {
  const Mesh mesh = Mesh::parse("pipe=2").value();
  const auto call = [](bool sends, const char* value, int microbatch) {
    return TransferCall{sends, "pipe", 2, 1, value, DType::f32, {2, 3}, microbatch};
  };
  struct Case {
    TransferCall sent, expected;
    std::string error;  // empty: none
  };
  const std::vector<Case> cases{
      {call(true, "between.0.0", 1), call(false, "between.0.0", 1), ""},
      {call(true, "between.0.0", 1), call(false, "between.0.0", 2),
       "rank 1 is in transfer #1, microbatch 2 of 24 B (between.0.0 f32[2, 3]), but rank 0 sent it transfer #1, "
       "microbatch 1 of 24 B (between.0.0 f32[2, 3])"},
      {call(true, "between.0.0", 1), call(false, "between.0.1", 1),
       "rank 1 is in transfer #1, microbatch 1 of 24 B (between.0.1 f32[2, 3]), but rank 0 sent it transfer #1, "
       "microbatch 1 of 24 B (between.0.0 f32[2, 3])"},
  };
  for (const Case& one : cases) {
    on_ranks(mesh, kLoopback, [&](std::int32_t rank, Communicator& communicator, Transport&) {
      Bits x(24), y(24);
      WorkCounters counters;
      const auto first = communicator.prepare(call(rank == 0, "between.0.0", 0), x.data()).value();
      const auto second = communicator.prepare(rank == 0 ? one.sent : one.expected, y.data()).value();
      ASSERT_TRUE(communicator.post(*first, counters).ok());
      ASSERT_TRUE(communicator.post(*second, counters).ok());
      const Status done = communicator.finish_transfers();
      if (rank == 0) return;
      EXPECT_EQ(done.ok() ? "" : done.error().message, one.error);
    });
  }
}

// After an error the communicator keeps no transfers, so their owners may destroy them.
TEST(Collectives, transfers_that_failed_are_let_go) {
  const Mesh mesh = Mesh::parse("pipe=2").value();
  on_ranks(mesh, kLoopback, [&](std::int32_t rank, Communicator& communicator, Transport&) {
    Bits x(24), all(24);
    WorkCounters counters;
    const CollectiveCall sum{CollectiveKind::all_reduce, "pipe", 2, DType::f32, {6}};
    const auto before = communicator.prepare(sum, all.data(), all.data(), nullptr).value();
    static_cast<void>(communicator.start(*before));  // the peer may have ended already
    {
      const auto transfer = communicator.prepare({rank == 0, "pipe", 2, 1, "x", DType::f32, {2, 3}}, x.data()).value();
      ASSERT_TRUE(communicator.post(*transfer, counters).ok());
      communicator.abort("enough");
      EXPECT_FALSE(communicator.finish_transfers().ok());
    }
    EXPECT_TRUE(communicator.finish_transfers().ok());  // none is posted
  });
}

}  // namespace
}  // namespace systole
