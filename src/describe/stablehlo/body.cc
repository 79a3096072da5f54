#include "describe/stablehlo/body.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "describe/ir/op.h"
#include "describe/program/collective_call.h"
#include "ground/base/error.h"

namespace systole::stablehlo {
namespace {

// "attn.q: contract", or the op alone.
std::string place_of(const Graph& graph, const GraphNode& node) {
  for (const ValueId id : node.results) {
    if (const std::string& name = graph.value_name(id); !name.empty()) return name + ": " + node.op->name;
  }
  return node.op->name;
}

std::string groups_text(const std::vector<std::vector<std::int64_t>>& groups) {
  CHECK(!groups.empty(), "a collective of no group");
  std::string text = "dense<[";
  for (const std::vector<std::int64_t>& group : groups) {
    text += &group == &groups.front() ? "[" : ", [";
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (i > 0) text += ", ";
      fmt::format_to(std::back_inserter(text), "{}", group[i]);
    }
    text += ']';
  }
  return text + fmt::format("]> : tensor<{}x{}xi64>", groups.size(), groups[0].size());
}

// Names the node without a lowering; for nested nodes the innermost.
class PlacedFailure : public Failure {
  using Failure::Failure;
};

}  // namespace

// The writing of one graph.
class BodyWriter::Walk {
 public:
  Walk(BodyWriter& writer, Builder& b, const Graph& graph, std::span<const Ssa> inputs)
      : writer_(writer), b_(b), graph_(graph), values_(static_cast<std::size_t>(graph.num_values())) {
    CHECK(inputs.size() == graph.inputs().size(), "'{}' takes {} values, not {}", graph.name(), graph.inputs().size(),
          inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) at(graph.inputs()[i].value) = inputs[i];
  }

  std::vector<Ssa> run() {
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      if (n >= run_end_) fenced_.clear();
      if (graph_.nodes()[n].recomputed && n >= run_end_ && !writer_.fenced_) begin_recomputed(n);
      write(graph_.nodes()[n]);
    }
    std::vector<Ssa> outputs;
    for (const GraphOutput& output : graph_.outputs()) outputs.push_back(at(output.value));
    return outputs;
  }

 private:
  Ssa& at(ValueId id) { return values_[static_cast<std::size_t>(id.index)]; }

  void write(const GraphNode& node) {
    const std::string place = place_of(graph_, node);
    b_.set_place(writer_.path_ + place);
    std::vector<Ssa> operands;
    for (const ValueId id : node.operands) {
      const auto fenced = fenced_.find(id.index);
      operands.push_back(fenced == fenced_.end() ? at(id) : fenced->second);
    }
    NodeCall call{graph_, node, operands, {}, writer_};
    for (const ValueId id : node.results) call.results.push_back(graph_.type(id));
    const OpLowering* lowering = find_lowering(node.op->name);
    if (lowering == nullptr)
      fail(error(ErrorKind::unsupported, "'{}' at {}{} cannot be lowered to StableHLO", node.op->name, writer_.path_,
                 place));
    const std::size_t depth = writer_.path_.size();
    if (std::string_view(node.op->name) == "repeat") writer_.path_ += node.attrs.get_string("dim") + "/";
    const bool fenced = std::exchange(writer_.fenced_, writer_.fenced_ || node.recomputed);
    const std::vector<Ssa> results = lower(*lowering, call, place);
    writer_.fenced_ = fenced;
    writer_.path_.resize(depth);
    CHECK(results.size() == node.results.size(), "{}: {} results for {}", place, results.size(), node.results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      CHECK(results[i].type == call.results[i], "{}: {} for {}", place, to_string(results[i].type),
            to_string(call.results[i]));
      at(node.results[i]) = results[i];
    }
  }

  std::vector<Ssa> lower(const OpLowering& lowering, const NodeCall& call, const std::string& place) {
    try {
      return lowering.lower(b_, call);
    } catch (const PlacedFailure&) {
      throw;  // from a nested node
    } catch (const Failure& failure) {
      Error told = failure.error();
      if (told.kind != ErrorKind::unsupported) throw;
      told.message += fmt::format(" (at {}{})", writer_.path_, place);
      throw PlacedFailure(std::move(told));
    }
  }

  // Inputs of a run of recomputed nodes pass through a barrier. Otherwise a compiler could merge the recomputation with
  // the first computation and keep its results, which recomputing is to avoid. Runs of only casts and constants save
  // nothing and have no barrier.
  void begin_recomputed(std::size_t first) {
    const std::vector<GraphNode>& nodes = graph_.nodes();
    run_end_ = first;
    bool works = false;
    std::vector<ValueId> outside;
    for (; run_end_ < nodes.size() && nodes[run_end_].recomputed; ++run_end_) {
      works = works || !nodes[run_end_].op->cheap;
      for (const ValueId id : nodes[run_end_].operands) {
        const NodeId producer = graph_.producer(id);
        const bool again = producer.valid() && graph_.node(producer).recomputed;
        if (!again && std::find(outside.begin(), outside.end(), id) == outside.end()) outside.push_back(id);
      }
    }
    if (!works) return;
    std::vector<Ssa> values;
    for (const ValueId id : outside) values.push_back(at(id));
    if (writer_.options_.unroll) {
      for (const ValueId id : met_by_recomputed(first, outside)) values.push_back(at(id));
    }
    b_.set_place(writer_.path_ + "recomputed");
    const std::vector<Ssa> held = b_.barrier(values);
    for (std::size_t i = 0; i < outside.size(); ++i) fenced_.emplace(outside[i].index, held[i]);
  }

  // Values that exist before the run at `first` and are combined with its results: the incoming gradient. The barrier
  // waits for them. In a loop's body they exist when it begins; in unrolled bodies nothing else would keep a compiler
  // from recomputing all layers at once.
  std::vector<ValueId> met_by_recomputed(std::size_t first, const std::vector<ValueId>& outside) const {
    const std::vector<GraphNode>& nodes = graph_.nodes();
    std::set<int> again, later;
    for (std::size_t n = first; n < nodes.size(); ++n) {
      for (const ValueId id : nodes[n].results) (n < run_end_ ? again : later).insert(id.index);
    }
    std::vector<ValueId> met;
    for (std::size_t n = run_end_; n < nodes.size(); ++n) {
      const ValueIds& operands = nodes[n].operands;
      if (std::none_of(operands.begin(), operands.end(), [&](ValueId id) { return again.contains(id.index); }))
        continue;
      for (const ValueId id : operands) {
        const auto in = [&](const std::vector<ValueId>& list) {
          return std::find(list.begin(), list.end(), id) != list.end();
        };
        if (!again.contains(id.index) && !later.contains(id.index) && !in(outside) && !in(met)) met.push_back(id);
      }
    }
    return met;
  }

  BodyWriter& writer_;
  Builder& b_;
  const Graph& graph_;
  std::vector<Ssa> values_;
  std::size_t run_end_ = 0;
  std::map<int, Ssa> fenced_;  // by value, within the run of recomputed nodes
};

std::vector<Ssa> BodyWriter::region(Builder& b, const Graph& graph, std::span<const Ssa> inputs) {
  return Walk(*this, b, graph, inputs).run();
}

void BodyWriter::note(std::string text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(std::move(text));
}

BodyWriter::Numbers BodyWriter::groups_of(std::string_view axis) const {
  auto groups = mesh_.groups(axes_of(axis));
  if (!groups.ok())
    fail(error(ErrorKind::unsupported, "a collective over the axis '{}', which the mesh '{}' lacks", axis,
               to_string(mesh_)));
  return std::move(*groups);
}

std::string BodyWriter::define(std::string name, const Numbers& numbers) {
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  name.insert(0, "#");
  while (definitions_.find(name + " ") != std::string::npos) name += '_';
  definitions_ += name + " = " + groups_text(numbers) + "\n";
  return name;
}

// Groups of thousands of devices are long and collectives are many, so the groups of each axis are written once.
ReplicaGroups BodyWriter::groups(std::string_view axis) {
  if (const auto known = groups_.find(axis); known != groups_.end()) return known->second;
  const Numbers groups = groups_of(axis);
  const ReplicaGroups made{define(fmt::format("groups_{}", axis), groups),
                           static_cast<std::int64_t>(groups.at(0).size())};
  return groups_.emplace(axis, made).first->second;
}

std::string BodyWriter::permute_pairs(std::string_view axis, std::int64_t by) {
  std::string& known = pairs_[{std::string(axis), by}];
  if (!known.empty()) return known;
  Numbers pairs;
  for (const std::vector<std::int64_t>& group : groups_of(axis)) {
    const auto n = static_cast<std::int64_t>(group.size());
    for (std::int64_t i = 0; i < n; ++i)
      pairs.push_back({group[static_cast<std::size_t>(i)], group[static_cast<std::size_t>(((i + by) % n + n) % n)]});
  }
  return known = define(fmt::format("pairs_{}_{}", axis, by), pairs);
}

}  // namespace systole::stablehlo
