// Every kind × algorithm × number of ranks × dtype × dim against the definition in f64, on threads; and the law that
// what the transport wrote is what the transfers say.
#include "execute/comm/collectives.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <thread>

#include "execute/comm/ring_transport.h"
#include "ground/mesh/collective.h"

namespace systole {
namespace {

using Bits = std::vector<std::byte>;

// Runs `body(rank, communicator)` on a thread for each device of the mesh.
void on_ranks(const Mesh& mesh, const std::function<void(std::int32_t, Communicator&, Transport&)>& body,
              std::optional<std::int64_t> ring_bytes = {}) {
  auto transports = loopback(static_cast<std::int32_t>(mesh.num_devices()), {Seconds(20)}, ring_bytes).value();
  std::vector<std::jthread> threads;
  for (auto& transport : transports) {
    threads.emplace_back([&mesh, &body, &transport] {
      const auto communicator = make_communicator(*transport, mesh).value();
      body(transport->rank(), *communicator, *transport);
    });
  }
}

// Small integers, which every dtype holds and whose sums over 8 ranks every dtype holds too.
double element(std::int64_t rank, std::int64_t place, DType dtype) {
  const auto value = static_cast<double>((rank * 7 + place * 5 + place / 11) % 13);
  return is_float(dtype) || dtype == DType::i8 || dtype == DType::i32 || dtype == DType::i64 ? value - 6 : value;
}

struct Tensor {
  DType dtype;
  Shape shape;
  std::vector<double> values;
};

Tensor operand(const CollectiveCall& call, std::int64_t rank) {
  Tensor t{call.dtype, call.shape, {}};
  for (std::int64_t i = 0; i < num_elements(call.shape); ++i) t.values.push_back(element(rank, i, call.dtype));
  return t;
}

// The part that index `i` of a dim of `size` belongs to when it is cut in n, and the same index in the part.
using Index = std::array<std::int64_t, 3>;
Index index_of(std::int64_t place, const Shape& shape) {
  Index index{};
  for (std::size_t d = shape.size(); d-- > 0; place /= shape[d]) index[d] = place % shape[d];
  return index;
}
std::int64_t place_of(const Index& index, const Shape& shape) {
  std::int64_t place = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) place = place * shape[d] + index[d];
  return place;
}

// What rank `me` of the group's operands ends with, element by element, in f64.
Tensor expected(const CollectiveCall& call, const std::vector<const Tensor*>& operands, std::int64_t me) {
  Tensor y{call.dtype, call.shape, {}};
  const auto n = static_cast<std::int64_t>(operands.size());
  const auto dim = static_cast<std::size_t>(call.kind == CollectiveKind::all_to_all ? call.concat_dim : call.dim);
  const auto split = static_cast<std::size_t>(call.split_dim);
  if (call.kind == CollectiveKind::all_gather) y.shape[dim] *= n;
  if (call.kind == CollectiveKind::reduce_scatter) y.shape[dim] /= n;
  if (call.kind == CollectiveKind::all_to_all) y.shape[split] /= n, y.shape[dim] *= n;
  for (std::int64_t i = 0; i < num_elements(y.shape); ++i) {
    Index index = index_of(i, y.shape);
    const auto combined = [&](std::int64_t place) {
      double result = operands[0]->values[static_cast<std::size_t>(place)];
      for (std::size_t r = 1; r < operands.size(); ++r) {
        const double next = operands[r]->values[static_cast<std::size_t>(place)];
        result = call.maximum ? std::max(result, next) : result + next;
      }
      return result;
    };
    if (call.kind == CollectiveKind::all_reduce) y.values.push_back(combined(i));
    if (call.kind == CollectiveKind::reduce_scatter) {
      index[dim] += me * y.shape[dim];
      y.values.push_back(combined(place_of(index, call.shape)));
    }
    if (call.kind == CollectiveKind::all_gather || call.kind == CollectiveKind::all_to_all) {
      const std::int64_t each = y.shape[dim] / n, source = index[dim] / each;
      index[dim] %= each;
      if (call.kind == CollectiveKind::all_to_all) index[split] += me * (call.shape[split] / n);
      y.values.push_back(
          operands[static_cast<std::size_t>(source)]->values[static_cast<std::size_t>(place_of(index, call.shape))]);
    }
  }
  return y;
}

Bits bits_of(const Tensor& t) {
  Bits bits(static_cast<std::size_t>(bytes_of(t.dtype, t.shape).count()));
  for (std::size_t i = 0; i < t.values.size(); ++i)
    store(t.dtype, bits.data(), static_cast<std::int64_t>(i), t.values[i]);
  return bits;
}

std::string name_of_call(const CollectiveCall& call) {
  return fmt::format("{} {} over {} of {}{} dims {} {} {}{}", name_of(call.kind), name_of(call.algorithm), call.axis,
                     name_of(call.dtype), to_string(call.shape), call.dim, call.split_dim, call.concat_dim,
                     call.maximum ? " max" : "");
}

// Runs it on all ranks, twice, and compares; `in_place` gives the operand's place as the result's.
void expect_defined(const CollectiveCall& call, const Mesh& mesh, bool in_place = false,
                    std::optional<std::int64_t> ring_bytes = {}) {
  const auto groups = mesh.groups(axes_of(call.axis)).value();
  const Collective collective = collective_on(call, mesh).value();
  const auto transfers = transfers_of(collective, call.algorithm).value();
  std::vector<Tensor> all;
  for (std::int64_t r = 0; r < mesh.num_devices(); ++r) all.push_back(operand(call, r));
  on_ranks(
      mesh,
      [&](std::int32_t rank, Communicator& communicator, Transport& transport) {
        for (const auto& group : groups) {
          const auto at = std::ranges::find(group, std::int64_t{rank});
          if (at == group.end()) continue;
          const std::int64_t me = at - group.begin();
          std::vector<const Tensor*> operands;
          for (const std::int64_t member : group) operands.push_back(&all[static_cast<std::size_t>(member)]);
          const Bits want = bits_of(expected(call, operands, me));
          const Bits original = bits_of(*operands[static_cast<std::size_t>(me)]);
          Bits from = original, into(want.size(), std::byte{0x5a});
          Bits workspace(static_cast<std::size_t>(collective_workspace(call).count()));
          std::byte* result = in_place ? from.data() : into.data();
          const auto prepared = communicator.prepare(call, from.data(), result, workspace.data());
          ASSERT_TRUE(prepared.ok()) << to_string(prepared.error());
          for (int time = 0; time < 2; ++time) {
            from = original;
            WorkCounters counters;
            const Bytes before = transport.bytes_written();
            const Status ran = communicator.run(**prepared, counters);
            ASSERT_TRUE(ran.ok()) << to_string(ran.error());
            ASSERT_EQ(in_place ? from : into, want) << name_of_call(call) << " rank " << rank;
            if (!in_place) { ASSERT_EQ(from, original) << name_of_call(call) << ": the operand changed"; }
            const std::int64_t planned = bytes_sent(transfers, static_cast<std::int32_t>(me)).count();
            ASSERT_EQ(counters.bytes_sent, planned) << name_of_call(call);
            ASSERT_EQ((transport.bytes_written() - before).count(), planned);
          }
        }
      },
      ring_bytes);
}

const std::vector<std::string> kMeshes{"data=2", "data=3", "data=4", "data=5", "data=8"};

std::vector<CollectiveCall> calls_on(const Mesh& mesh, const std::string& axis, DType dtype) {
  std::vector<CollectiveCall> calls;
  std::int64_t n = 1;
  for (const std::string& name : axes_of(axis)) n *= mesh.axes()[mesh.find(name).value()].size;
  const Shape shape{2 * n, 3, n};
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                    CollectiveKind::all_gather, CollectiveKind::all_to_all}) {
    for (const CollectiveAlgorithm algorithm : algorithms_of(kind)) {
      CollectiveCall call{kind, axis, n, dtype, shape, 0, 0, 0, false, algorithm};
      if (kind == CollectiveKind::all_reduce) {
        calls.push_back(call);
        call.shape = {n - 1, 1};  // fewer elements than ranks
        calls.push_back(call);
      }
      for (const int dim : {0, 1, 2}) {
        call.dim = dim;
        if (kind == CollectiveKind::all_gather || (kind == CollectiveKind::reduce_scatter && dim != 1))
          calls.push_back(call);
        call.split_dim = dim;
        for (const int concat : {0, 1, 2}) {
          call.concat_dim = concat;
          if (kind == CollectiveKind::all_to_all && dim != 1) calls.push_back(call);
        }
      }
    }
  }
  return calls;
}

bool carries_out(const CollectiveCall& call) {
  return !rounds_once(call) || call.algorithm == CollectiveAlgorithm::direct;
}

TEST(Collectives, every_kind_algorithm_and_dim_is_as_defined) {
  for (const std::string& text : kMeshes) {
    const Mesh mesh = Mesh::parse(text).value();
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const CollectiveCall& call : calls_on(mesh, "data", dtype)) {
        if (carries_out(call)) expect_defined(call, mesh);
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
        if (call.reduces() && carries_out(call)) expect_defined(call, mesh);
      }
    }
  }
  for (const DType dtype : {DType::boolean, DType::f8e4m3, DType::f8e5m2}) {  // moved, not summed
    CollectiveCall call{CollectiveKind::all_gather, "data", 3, dtype, {2, 3}, 1};
    expect_defined(call, mesh);
    call.kind = CollectiveKind::all_reduce;
    on_ranks(mesh, [&](std::int32_t, Communicator& communicator, Transport&) {
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
        if (call.kind == CollectiveKind::all_reduce && carries_out(call)) expect_defined(call, mesh, true);
      }
    }
  }
}

TEST(Collectives, over_one_axis_and_over_several) {
  for (const char* text : {"data=2 model=2", "data=2 model=3", "data=2 seq=1 model=4", "data=2 model=2 seq=2"}) {
    const Mesh mesh = Mesh::parse(text).value();
    for (const char* axis : {"data", "model", "data,model", "model,data"}) {
      for (const CollectiveCall& call : calls_on(mesh, axis, DType::f32)) expect_defined(call, mesh);
    }
  }
}

// Longer than a ring, so that every message goes in many pieces, at odd places.
TEST(Collectives, messages_longer_than_their_rings) {
  for (const std::string& text : kMeshes) {
    const Mesh mesh = Mesh::parse(text).value();
    for (const std::int64_t ring_bytes : {256, 1024}) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        for (CollectiveCall call : calls_on(mesh, "data", dtype)) {
          if (call.dim == 2) continue;
          if (call.kind != CollectiveKind::all_reduce || call.shape.size() == 3) call.shape[1] = 31;
          if (carries_out(call)) expect_defined(call, mesh, false, ring_bytes);
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
      expect_defined(by, mesh, false, 1024);
    }
  }
}

// The sum of 8 bf16 in f64, rounded once: what a sum that is rounded on the way misses.
TEST(Collectives, sums_of_bf16_are_rounded_once) {
  const Mesh mesh = Mesh::parse("data=8").value();
  const CollectiveCall call{CollectiveKind::all_reduce, "data", 8, DType::bf16, {4096}};
  const auto value = [](std::int64_t rank, std::int64_t i) {
    return rounded(DType::bf16, std::sin(static_cast<double>(i * 8 + rank)) * (1 + static_cast<double>(i % 5)));
  };
  Bits want(4096 * 2);
  std::int64_t unlike = 0;  // to the sum that rounds each time
  for (std::int64_t i = 0; i < 4096; ++i) {
    double sum = 0, rough = 0;
    for (std::int64_t r = 0; r < 8; ++r) sum += value(r, i), rough = rounded(DType::bf16, rough + value(r, i));
    store(DType::bf16, want.data(), i, sum);
    unlike += rough != rounded(DType::bf16, sum) ? 1 : 0;
  }
  EXPECT_GT(unlike, 1000);
  on_ranks(mesh, [&](std::int32_t rank, Communicator& communicator, Transport&) {
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
  on_ranks(mesh, [&](std::int32_t, Communicator& communicator, Transport&) {
    Bits x(64);
    CollectiveCall call{CollectiveKind::all_reduce, "data", 4, DType::bf16, {8}};
    call.algorithm = CollectiveAlgorithm::ring;
    const auto refused = communicator.prepare(call, x.data(), x.data(), nullptr);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::unsupported);
    EXPECT_NE(refused.error().hint.find("direct"), std::string::npos);
    call.maximum = true;  // is exact
    EXPECT_TRUE(communicator.prepare(call, x.data(), x.data(), nullptr).ok());
    call.axis = "dta";
    EXPECT_EQ(communicator.prepare(call, x.data(), x.data(), nullptr).error().kind, ErrorKind::not_found);
  });
}

// All ranks hold the same bits, at every run: the order of a sum does not depend on who came first.
TEST(Collectives, a_sum_is_the_same_bits_everywhere_and_always) {
  const Mesh mesh = Mesh::parse("data=5").value();
  for (const CollectiveAlgorithm algorithm : algorithms_of(CollectiveKind::all_reduce)) {
    std::vector<Bits> results(5 * 20);
    on_ranks(mesh, [&](std::int32_t rank, Communicator& communicator, Transport&) {
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

// Writes every message twice, the second time to nobody's use.
class SendsTwice : public Transport {
 public:
  explicit SendsTwice(Transport& once) : once_(once) {}
  std::int32_t rank() const override { return once_.rank(); }
  std::int32_t num_ranks() const override { return once_.num_ranks(); }
  const char* name() const override { return "twice"; }
  void abort(const std::string& why) override { once_.abort(why); }
  Bytes bytes_written() const override { return once_.bytes_written(); }
  Status exchange(const Exchange& exchange) override {
    TRY(once_.exchange(exchange));
    std::vector<Incoming> again(exchange.in.begin(), exchange.in.end());
    std::vector<Bits> nowhere;
    for (Incoming& in : again) {
      nowhere.emplace_back(static_cast<std::size_t>(in.bytes.count()));
      in.into = nowhere.back().data(), in.row = in.stride = in.bytes, in.combine = nullptr;
    }
    return once_.exchange({exchange.stamp, exchange.out, again});
  }

 private:
  Transport& once_;
};

TEST(Collectives, a_transport_that_sends_twice_is_seen) {
  const Mesh mesh = Mesh::parse("data=3").value();
  const CollectiveCall call{CollectiveKind::all_reduce, "data", 3, DType::f32, {30}};
  const auto transfers = transfers_of(collective_on(call, mesh).value(), call.algorithm).value();
  on_ranks(mesh, [&](std::int32_t rank, Communicator&, Transport& transport) {
    SendsTwice twice(transport);
    const auto communicator = make_communicator(twice, mesh).value();
    Bits x(120);
    const auto prepared = communicator->prepare(call, x.data(), x.data(), nullptr).value();
    WorkCounters counters;
    ASSERT_TRUE(communicator->run(*prepared, counters).ok());
    EXPECT_EQ(counters.bytes_sent, 2 * bytes_sent(transfers, rank).count());
  });
}

TEST(Collectives, an_observer_is_told_of_each_run) {
  struct Told : CollectiveObserver {
    void begin(const SeenCollective& seen) override { text += fmt::format("{} {}", seen.call->axis, seen.sequence); }
    void end(const SeenCollective&, bool ok, Bytes sent) override { text += fmt::format(" {} {}; ", ok, sent.count()); }
    std::string text;
  };
  const Mesh mesh = Mesh::parse("data=2 model=2").value();
  on_ranks(mesh, [&](std::int32_t, Communicator& communicator, Transport&) {
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
  on_ranks(mesh, [&](std::int32_t rank, Communicator& communicator, Transport&) {
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

}  // namespace
}  // namespace systole
