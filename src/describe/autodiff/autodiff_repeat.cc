// The gradient of a repeat: a reversed repeat. Its carries are the cotangents of the original carries and, for each
// shared operand whose gradient is wanted, a running sum. Its stacked operands are the residuals of each iteration, the
// cotangents of the stacked outputs and the stacked inputs that it reads again. Its stacked outputs are the gradients
// of the stacked operands.

#include <algorithm>

#include "describe/autodiff/autodiff_split.h"
#include "describe/ops/ops.h"

namespace systole {

class RepeatSplitter {
 public:
  RepeatSplitter(Splitter& outer, int n)
      : outer_(outer),
        n_(n),
        node_(*outer.node_),
        body_(node_.regions[0]),
        carries_(static_cast<std::size_t>(node_.attrs.get_int("carries"))),
        first_shared_(carries_ + static_cast<std::size_t>(node_.attrs.get_int("stacked"))),
        count_(node_.attrs.get_int("count")),
        dim_(node_.attrs.get_string("dim")),
        reversed_(body_.name() + ".backward") {}

  void run() {
    split_body();
    take_carries();
    take_stacked();
    take_shared();
    const std::vector<Value> gradients = inline_graph(reversed_, inner_.backward, arguments_);
    const std::vector<std::size_t> stacked = give(gradients);
    const Repeat done =
        repeat(std::move(reversed_), count_, carried_, stacked_, shared_, dim_, !node_.attrs.get_bool("reverse"));
    std::size_t at = 0;
    for (const auto& [i, in] : carried_in_) accumulate(i, done.carries[at++]);
    for (const auto& [i, in] : sum_in_) accumulate(i, done.carries[at++]);
    for (std::size_t k = 0; k < stacked.size(); ++k) accumulate(stacked[k], done.outputs[k]);
  }

 private:
  bool is_stacked(std::size_t i) const { return i >= carries_ && i < first_shared_; }
  const std::optional<Value>& cotangent(std::size_t result) const {
    return outer_.cotangent_[Splitter::index(node_.results[result])];
  }
  void accumulate(std::size_t operand, Value gradient) {
    if (outer_.active_[Splitter::index(node_.operands[operand])]) outer_.accumulate(node_.operands[operand], gradient);
  }

  // Finds the active body inputs. Iterates to a fixed point: a carry is active if it starts active or its output
  // becomes so.
  void find_wanted() {
    for (const ValueId id : node_.operands) wanted_.push_back(outer_.active_[Splitter::index(id)]);
    for (bool changed = true; changed;) {
      changed = false;
      const std::vector<bool> active = dependents(body_, wanted_);
      for (std::size_t i = 0; i < carries_; ++i) {
        if (!wanted_[i] && active[Splitter::index(body_.outputs()[i].value)]) wanted_[i] = changed = true;
      }
    }
  }

  // Splits the body. The forward repeat stacks the residuals of each iteration.
  void split_body() {
    find_wanted();
    std::vector<bool> available, given;
    for (std::size_t i = 0; i < node_.operands.size(); ++i) available.push_back(i >= carries_);
    for (std::size_t i = 0; i < node_.results.size(); ++i)
      given.push_back(i < carries_ ? wanted_[i] : cotangent(i).has_value());
    inner_ = split(Request{body_, wanted_, available, given, std::nullopt, outer_.request_.policy, true});
    std::vector<Type>& further = outer_.further_types_[n_];
    for (std::size_t i = body_.outputs().size(); i < inner_.forward.outputs().size(); ++i)
      further.push_back(stacked_type(inner_.forward.type(inner_.forward.outputs()[i].value), count_, dim_));
    outer_.bodies_.emplace(n_, inner_.forward);
    arguments_.resize(inner_.sources.size());
  }

  void take_carries() {
    Graph& backward = outer_.backward_;
    for (std::size_t i = 0; i < carries_; ++i) {
      if (!wanted_[i]) continue;
      const std::optional<Value>& g = cotangent(i);
      carried_.push_back(g ? *g : constant(backward, outer_.graph_.type(node_.results[i]), 0));
      carried_in_.emplace(i, reversed_.input(fmt::format("cotangent.{}", i), carried_.back().type()));
    }
    for (std::size_t i = first_shared_; i < node_.operands.size(); ++i) {
      if (!wanted_[i]) continue;
      carried_.push_back(constant(backward, outer_.graph_.type(node_.operands[i]), 0));
      sum_in_.emplace(i, reversed_.input(fmt::format("sum.{}", i), carried_.back().type()));
    }
  }

  void take_stacked() {
    for (std::size_t s = 0; s < inner_.sources.size(); ++s) {
      const Source& source = inner_.sources[s];
      const auto i = static_cast<std::size_t>(source.index);
      std::optional<Value> operand;
      if (source.kind == Source::Kind::residual) {
        operand = outer_.residual({ValueId{}, n_, source.index});
      } else if (source.kind == Source::Kind::cotangent && i >= carries_) {
        operand = *cotangent(i);
      } else if (source.kind == Source::Kind::input && is_stacked(i)) {
        operand = outer_.use(node_.operands[i]);
      }
      if (!operand) continue;
      stacked_.push_back(*operand);
      arguments_[s] = reversed_.input(fmt::format("slice.{}", s), slice_type(operand->type()));
    }
  }

  void take_shared() {
    for (std::size_t s = 0; s < inner_.sources.size(); ++s) {
      const Source& source = inner_.sources[s];
      const auto i = static_cast<std::size_t>(source.index);
      if (source.kind == Source::Kind::cotangent && i < carries_) arguments_[s] = carried_in_.at(i);
      if (source.kind != Source::Kind::input || is_stacked(i)) continue;
      shared_.push_back(outer_.use(node_.operands[i]));
      arguments_[s] = reversed_.input(fmt::format("shared.{}", s), shared_.back().type());
    }
  }

  // Adds the outputs of the reversed body. Returns the stacked operands that get a gradient.
  std::vector<std::size_t> give(const std::vector<Value>& gradients) {
    const auto gradient_of = [&](std::size_t i) -> std::optional<Value> {
      if (!inner_.gradients[i]) return std::nullopt;
      return gradients[static_cast<std::size_t>(*inner_.gradients[i])];
    };
    for (const auto& [i, in] : carried_in_) {
      const std::optional<Value> g = gradient_of(i);
      reversed_.output(fmt::format("cotangent.{}", i), g ? *g : constant(reversed_, in.type(), 0));
    }
    for (const auto& [i, in] : sum_in_) {
      const std::optional<Value> g = gradient_of(i);
      reversed_.output(fmt::format("sum.{}", i), g ? add(in, *g) : in);
    }
    std::vector<std::size_t> stacked;
    for (std::size_t i = carries_; i < first_shared_; ++i) {
      const std::optional<Value> g = gradient_of(i);
      if (!g) continue;
      stacked.push_back(i);
      reversed_.output(fmt::format("gradient.{}", i), *g);
    }
    return stacked;
  }

  Splitter& outer_;
  const int n_;
  const GraphNode& node_;
  const Graph& body_;
  const std::size_t carries_, first_shared_;
  const std::int64_t count_;
  const std::string dim_;
  std::vector<bool> wanted_;  // per body input
  Split inner_;
  Graph reversed_;
  std::vector<Value> arguments_;                      // arguments of inner_.backward, in reversed_
  std::vector<Value> carried_, stacked_, shared_;     // operands, in the outer backward graph
  std::map<std::size_t, Value> carried_in_, sum_in_;  // body input → value in reversed_
};

void Splitter::backward_repeat(int n) { RepeatSplitter(*this, n).run(); }

}  // namespace systole
