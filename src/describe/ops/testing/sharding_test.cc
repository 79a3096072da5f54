// Every op sharded over a fake 2×3 mesh computes the unsharded result. Each factor of its rule is sharded over each
// axis alone, and each pair of factors over the two axes, if the sizes divide. Passing factors run the op on shards,
// reductions add partial sums, local rewrites run their graph on all ranks.

#include <gtest/gtest.h>

#include <set>

#include "describe/ops/testing/fake_mesh.h"
#include "describe/ops/testing/list.h"

namespace systole {
namespace {

using Kind = ShardingRule::Kind;

const FakeMesh& mesh() {
  static const FakeMesh two_by_three{{"x", "y"}, {2, 3}};
  return two_by_three;
}

struct Cut {
  int factor;
  std::size_t axis;
};

struct Whole {
  const OpCase& call;
  const OpDef& op;
  ShardingRule rule;
  std::vector<HostTensor> operands, results;
  bool is(const Cut& cut, Kind kind) const { return rule.factors[static_cast<std::size_t>(cut.factor)].kind == kind; }
};

Whole whole_of(const OpCase& call) {
  const OpDef& op = op_named(call.op);
  const std::vector<Type> types = call.operand_types();
  std::vector<HostTensor> operands = fill_operands(call);
  std::vector<HostTensor> results = run_reference(op, call.attrs, operands);
  return {call, op, op.sharding(OpCall{op, call.attrs, types, {}}), std::move(operands), std::move(results)};
}

void check_rule(const Whole& whole) {
  auto check_side = [&](const std::vector<std::vector<int>>& dims, const std::vector<HostTensor>& tensors,
                        const char* side) {
    ASSERT_EQ(dims.size(), tensors.size()) << whole.call.describe() << ": rule for " << side;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      ASSERT_EQ(dims[i].size(), tensors[i].shape().size())
          << whole.call.describe() << ": rule for " << side << " " << i;
      for (const int factor : dims[i]) ASSERT_LT(factor, static_cast<int>(whole.rule.factors.size()));
    }
  };
  check_side(whole.rule.operands, whole.operands, "operand");
  check_side(whole.rule.results, whole.results, "result");
}

// The dim of a tensor that belongs to the factor, or -1.
int dim_of(const std::vector<int>& dims, int factor) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == factor) return static_cast<int>(i);
  }
  return -1;
}

// Whether the axis's size divides each dim of the factor, none of which is empty.
bool divides(const Whole& whole, const Cut& cut) {
  const std::int64_t parts = mesh().sizes[cut.axis];
  bool found = false;
  auto fits = [&](const std::vector<std::vector<int>>& dims, const std::vector<HostTensor>& tensors) {
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const int dim = dim_of(dims[i], cut.factor);
      if (dim < 0) continue;
      found = true;
      const std::int64_t size = tensors[i].shape()[static_cast<std::size_t>(dim)];
      if (size == 0 || size % parts != 0) return false;
    }
    return true;
  };
  return fits(whole.rule.operands, whole.operands) && fits(whole.rule.results, whole.results) && found;
}

HostTensor part_for(const HostTensor& tensor, const std::vector<int>& dims, std::span<const Cut> cuts,
                    std::int64_t rank) {
  HostTensor part = tensor;
  for (const Cut& cut : cuts) {
    const int dim = dim_of(dims, cut.factor);
    if (dim >= 0) part = part_of(part, dim, mesh().coordinate(rank, cut.axis), mesh().sizes[cut.axis]);
  }
  return part;
}

// The first index of the factor on a rank.
std::int64_t offset_of(const Whole& whole, const Cut& cut, std::int64_t rank) {
  auto size_in = [&](const std::vector<std::vector<int>>& dims,
                     const std::vector<HostTensor>& tensors) -> std::int64_t {
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (const int dim = dim_of(dims[i], cut.factor); dim >= 0)
        return tensors[i].shape()[static_cast<std::size_t>(dim)];
    }
    return -1;
  };
  std::int64_t size = size_in(whole.rule.operands, whole.operands);
  if (size < 0) size = size_in(whole.rule.results, whole.results);
  return mesh().coordinate(rank, cut.axis) * (size / mesh().sizes[cut.axis]);
}

// The graph of one device: the op on its shard, or the local rewrite.
Graph device_graph(const Whole& whole, std::span<const Cut> cuts, std::span<const HostTensor> operands) {
  std::vector<Type> types, results;
  for (const HostTensor& operand : operands) types.push_back(type_of(operand));
  for (std::size_t r = 0; r < whole.results.size(); ++r)
    results.push_back(type_of(part_for(whole.results[r], whole.rule.results[r], cuts, 0)));
  const Attrs attrs = whole.op.local_attrs ? whole.op.local_attrs(whole.call.attrs, results) : whole.call.attrs;
  for (const Cut& cut : cuts) {
    if (!whole.is(cut, Kind::local)) continue;
    CHECK(static_cast<bool>(whole.op.local_rewrite), "{} has a local factor and no local_rewrite", whole.op.name);
    return whole.op.local_rewrite(OpCall{whole.op, attrs, types, {}}, cut.factor, mesh().axes[cut.axis],
                                  mesh().sizes[cut.axis]);
  }
  Graph graph("part");
  std::vector<Value> inputs;
  for (std::size_t i = 0; i < types.size(); ++i) inputs.push_back(graph.input("x" + std::to_string(i), types[i]));
  const std::vector<Value> outputs = graph.apply(whole.op, inputs, attrs);
  for (std::size_t r = 0; r < outputs.size(); ++r) {
    CHECK(outputs[r].type() == results[r], "a part of result {} is {}, inferred {}", r, to_string(results[r]),
          to_string(outputs[r].type()));
    graph.output("y" + std::to_string(r), outputs[r]);
  }
  return graph;
}

// Assembles a result, one axis after the other: concatenates shards, adds the partial sums of a reduction, else checks
// that all ranks hold the same.
HostTensor assembled(const Whole& whole, std::span<const Cut> cuts, std::size_t result, const PerRank& outputs) {
  std::vector<HostTensor> parts;
  for (const std::vector<HostTensor>& rank : outputs) parts.push_back(rank[result]);
  for (std::size_t axis = mesh().axes.size(); axis-- > 0;) {
    const auto cut = std::find_if(cuts.begin(), cuts.end(), [&](const Cut& c) { return c.axis == axis; });
    const int dim = cut == cuts.end() ? -1 : dim_of(whole.rule.results[result], cut->factor);
    const std::size_t size = static_cast<std::size_t>(mesh().sizes[axis]);
    std::vector<HostTensor> fewer;
    for (std::size_t first = 0; first < parts.size(); first += size) {
      const std::span<const HostTensor> group(&parts[first], size);
      if (dim >= 0) {
        fewer.push_back(joined(group, dim));
      } else if (cut != cuts.end() && whole.is(*cut, Kind::reduction)) {
        fewer.push_back(summed(group));
      } else {
        for (const HostTensor& other : group)
          EXPECT_TRUE(other == group[0]) << whole.call.describe() << ": ranks differ in result " << result;
        fewer.push_back(group[0]);
      }
    }
    parts = std::move(fewer);
  }
  return parts[0];
}

std::string text_of(const Whole& whole, std::span<const Cut> cuts) {
  std::string text = whole.call.describe() + " cut";
  for (const Cut& cut : cuts)
    text += fmt::format(" {} over {}", whole.rule.factors[static_cast<std::size_t>(cut.factor)].name,
                        mesh().axes[cut.axis]);
  return text;
}

void compare_cut(const Whole& whole, std::span<const Cut> cuts) {
  PerRank inputs;
  const Cut* local = nullptr;
  for (const Cut& cut : cuts) {
    if (whole.is(cut, Kind::local)) local = &cut;
  }
  for (std::int64_t rank = 0; rank < mesh().num_ranks(); ++rank) {
    inputs.emplace_back();
    for (std::size_t i = 0; i < whole.operands.size(); ++i)
      inputs.back().push_back(part_for(whole.operands[i], whole.rule.operands[i], cuts, rank));
  }
  const Graph graph = device_graph(whole, cuts, inputs[0]);
  if (local != nullptr) {
    for (std::int64_t rank = 0; rank < mesh().num_ranks(); ++rank) {
      const double offset[] = {static_cast<double>(offset_of(whole, *local, rank))};
      inputs[static_cast<std::size_t>(rank)].push_back(HostTensor(DType::i64, {}, offset));
    }
  }
  const PerRank outputs = evaluate_on(mesh(), graph, inputs);
  for (std::size_t r = 0; r < whole.results.size(); ++r) {
    // Each partial sum is rounded, and may be larger than the total.
    const double tolerance = 4 * tolerance_of(whole.call, whole.results[r].dtype(), DType::f64);
    EXPECT_EQ(difference(assembled(whole, cuts, r, outputs), whole.results[r], tolerance), "")
        << text_of(whole, cuts) << ", result " << r;
  }
}

bool can_be_cut(const ShardingRule::Factor& factor) { return factor.kind != Kind::replicated; }

TEST(EveryOp, CutIsWhole) {
  std::set<std::string> cut_somewhere, never;
  for (const OpCase& call : op_cases(DType::f64).good) {
    if (!call.shard) continue;
    const Whole whole = whole_of(call);
    check_rule(whole);
    if (::testing::Test::HasFatalFailure()) return;
    std::vector<Cut> possible;
    for (int factor = 0; factor < static_cast<int>(whole.rule.factors.size()); ++factor) {
      if (!can_be_cut(whole.rule.factors[static_cast<std::size_t>(factor)])) continue;
      // Tracks kinds of factors: a reduction that no case shards is as untested as an op that no case shards.
      const std::string what =
          call.op + (whole.rule.factors[static_cast<std::size_t>(factor)].kind == Kind::pass ? ", a passing factor"
                     : whole.rule.factors[static_cast<std::size_t>(factor)].kind == Kind::reduction
                         ? ", a reduction"
                         : ", a local rewrite");
      never.insert(what);
      for (const std::size_t axis : {std::size_t{0}, std::size_t{1}}) {
        if (!divides(whole, {factor, axis})) continue;
        possible.push_back({factor, axis});
        cut_somewhere.insert(what);
      }
    }
    for (const Cut& first : possible) {
      compare_cut(whole, std::array{first});
      for (const Cut& second : possible) {
        const bool both_local = whole.is(first, Kind::local) && whole.is(second, Kind::local);
        if (first.axis == 0 && second.axis == 1 && first.factor != second.factor && !both_local)
          compare_cut(whole, std::array{first, second});
      }
    }
  }
  for (const std::string& what : never) EXPECT_TRUE(cut_somewhere.count(what)) << "no case cuts " << what;
}

}  // namespace
}  // namespace systole
