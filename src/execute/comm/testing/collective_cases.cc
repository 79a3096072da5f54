#include "execute/comm/testing/collective_cases.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <thread>

#include "execute/comm/ring_transport.h"
#include "ground/mesh/collective.h"

namespace systole {
namespace {

using Bits = std::vector<std::byte>;

// Small integers: every dtype holds them and their sums over 8 ranks exactly.
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

// Converts between the row-major offset of an element and its index per dim.
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

// The result of rank `me` for the group's operands, element by element, in f64.
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
    if (call.kind == CollectiveKind::collective_permute)
      y.values.push_back(
          operands[static_cast<std::size_t>(((me - call.by) % n + n) % n)]->values[static_cast<std::size_t>(i)]);
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

}  // namespace

MakeRanks ranks_over_loopback(std::optional<std::int64_t> ring_bytes) {
  return [ring_bytes](std::int32_t n) { return loopback(n, {Seconds(20)}, ring_bytes).value(); };
}

void on_ranks(const Mesh& mesh, const MakeRanks& make,
              const std::function<void(std::int32_t, Communicator&, Transport&)>& body) {
  auto transports = make(static_cast<std::int32_t>(mesh.num_devices()));
  std::vector<std::jthread> threads;
  for (auto& transport : transports) {
    threads.emplace_back([&mesh, &body, &transport] {
      const auto communicator = make_communicator(*transport, mesh).value();
      body(transport->rank(), *communicator, *transport);
    });
  }
}

void expect_defined(const CollectiveCall& call, const Mesh& mesh, const MakeRanks& make, bool in_place) {
  const auto groups = mesh.groups(axes_of(call.axis)).value();
  const Collective collective = collective_on(call, mesh).value();
  const auto transfers = transfers_of(collective, call.algorithm).value();
  std::vector<Tensor> all;
  for (std::int64_t r = 0; r < mesh.num_devices(); ++r) all.push_back(operand(call, r));
  on_ranks(mesh, make, [&](std::int32_t rank, Communicator& communicator, Transport& transport) {
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
  });
}

void expect_defined_beside_others(const std::vector<CollectiveCall>& calls, const Mesh& mesh, const MakeRanks& make) {
  struct Run {
    Bits want, from, into, workspace;
    std::unique_ptr<PreparedCollective> prepared;
  };
  on_ranks(mesh, make, [&](std::int32_t rank, Communicator& communicator, Transport& transport) {
    std::vector<Run> runs;
    std::int64_t planned = 0;
    for (const CollectiveCall& call : calls) {
      std::vector<std::int64_t> group;
      for (const auto& each : mesh.groups(axes_of(call.axis)).value()) {
        if (std::ranges::find(each, std::int64_t{rank}) != each.end()) group = each;
      }
      const std::int64_t me = std::ranges::find(group, std::int64_t{rank}) - group.begin();
      std::vector<Tensor> all;
      std::vector<const Tensor*> operands;
      for (const std::int64_t member : group) all.push_back(operand(call, member));
      for (const Tensor& each : all) operands.push_back(&each);
      Run run{bits_of(expected(call, operands, me)), bits_of(*operands[static_cast<std::size_t>(me)]), {}, {}, nullptr};
      run.into.resize(run.want.size());
      run.workspace.resize(static_cast<std::size_t>(collective_workspace(call).count()));
      run.prepared = communicator.prepare(call, run.from.data(), run.into.data(), run.workspace.data()).value();
      runs.push_back(std::move(run));
      planned += bytes_sent(transfers_of(collective_on(call, mesh).value(), call.algorithm).value(),
                            static_cast<std::int32_t>(me))
                     .count();
    }
    std::mt19937 random(static_cast<unsigned>(rank) + 1);  // different on every rank
    for (int time = 0; time < 3; ++time) {
      for (Run& run : runs) std::ranges::fill(run.into, std::byte{0x5a});
      WorkCounters counters;
      const Bytes before = transport.bytes_written();
      for (std::size_t i = 0; i < runs.size(); ++i) {
        ASSERT_TRUE(communicator.start(*runs[i].prepared).ok());
        for (std::size_t k = random() % 4; k-- > 0;) ASSERT_TRUE(communicator.progress().ok());
        if (random() % 5 != 0) continue;
        const std::size_t ended = random() % (i + 1);
        ASSERT_TRUE(communicator.finish(runs[ended].prepared.get(), counters).ok());
        for (std::size_t j = 0; j <= ended; ++j) ASSERT_EQ(runs[j].into, runs[j].want) << name_of_call(calls[j]);
      }
      ASSERT_TRUE(communicator.finish(nullptr, counters).ok());
      for (std::size_t i = 0; i < runs.size(); ++i) ASSERT_EQ(runs[i].into, runs[i].want) << name_of_call(calls[i]);
      ASSERT_EQ(counters.bytes_sent, planned);
      ASSERT_EQ((transport.bytes_written() - before).count(), planned);
    }
  });
}

std::vector<CollectiveCall> calls_on(const Mesh& mesh, const std::string& axis, DType dtype) {
  std::vector<CollectiveCall> calls;
  std::int64_t n = 1;
  for (const std::string& name : axes_of(axis)) n *= mesh.axes()[mesh.find(name).value()].size;
  const Shape shape{2 * n, 3, n};
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
        CollectiveKind::all_to_all, CollectiveKind::collective_permute}) {
    for (const CollectiveAlgorithm algorithm : algorithms_of(kind)) {
      CollectiveCall call{kind, axis, n, dtype, shape, 0, 0, 0, false, algorithm};
      if (kind == CollectiveKind::all_reduce) {
        calls.push_back(call);
        call.shape = {n - 1, 1};  // fewer elements than ranks
        calls.push_back(call);
      }
      if (kind == CollectiveKind::collective_permute) {
        for (const std::int64_t by : {std::int64_t{1}, std::int64_t{-1}, n + 2, n}) {
          call.by = by;
          calls.push_back(call);
        }
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

}  // namespace systole
