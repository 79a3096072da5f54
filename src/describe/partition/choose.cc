#include "describe/partition/choose.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

namespace systole {
namespace {

constexpr int kWhole = Layout::kWhole, kPartial = Layout::kPartial;

int dim_of(const std::vector<int>& factors, int factor) {
  const auto found = std::find(factors.begin(), factors.end(), factor);
  return found == factors.end() ? kWhole : static_cast<int>(found - factors.begin());
}

// Bytes that each of n devices sends to reshard a value on one axis; `bytes` is the size on one device before.
double moved(double bytes, int from, int to, double n) {
  if (from == to || to == kAnywhere || from == kWhole) return 0;
  if (from == kPartial) return bytes * (n - 1) / n * (to >= 0 ? 1 : 2);
  return to >= 0 ? bytes * (n - 1) / n : bytes * (n - 1);
}

// The size of one device's shard, as a real number for comparisons.
double local_bytes(const Type& whole, const Layout& layout, const Mesh& mesh) {
  double bytes = static_cast<double>(size_of(whole.dtype));
  for (int dim = 0; dim < whole.ndim(); ++dim) {
    const std::int64_t parts = parts_of(layout, dim, mesh);
    bytes *= static_cast<double>((whole.size(dim) + parts - 1) / parts);
  }
  return bytes;
}

class Chooser {
 public:
  Chooser(const OpCall& call, std::span<const Type> results, std::span<const PlacedOperand> operands,
          std::span<const PreferredLayout> preferred, const Mesh& mesh, bool fill)
      : call_(call),
        results_(results),
        operands_(operands),
        preferred_(preferred),
        mesh_(mesh),
        fill_(fill),
        rule_(call.op.sharding(call)) {
    choice_.operands.assign(operands.size(), Layout::whole(mesh));
    choice_.results.assign(results.size(), Layout::whole(mesh));
  }

  Choice run() {
    for (std::size_t axis = 0; axis < mesh_.axes().size(); ++axis) decide(axis);
    return std::move(choice_);
  }

 private:
  using Kind = ShardingRule::Kind;
  Kind kind(int factor) const { return rule_.factors[static_cast<std::size_t>(factor)].kind; }
  double size(std::size_t axis) const { return static_cast<double>(mesh_.axes()[axis].size); }

  // The axis's entry in the layout of an operand or result if the factor is sharded.
  int place(const std::vector<int>& dims, int factor, bool result) const {
    if (factor == Choice::kTerms) return kPartial;
    if (factor == Choice::kNone) return kWhole;
    const int dim = dim_of(dims, factor);
    return dim < 0 && result && kind(factor) == Kind::reduction ? kPartial : dim;
  }

  bool possible(int factor, std::size_t axis) const {
    if (kind(factor) == Kind::replicated) return false;
    if (kind(factor) == Kind::local && choice_.local_factor >= 0 && choice_.local_factor != factor) return false;
    // Padding stays zero in ops that only add and convert.
    const bool keeps_zeros = call_.op.elementwise && is_linear(call_.op);
    if ((fill_ || keeps_zeros) && kind(factor) != Kind::local) return true;
    const auto divide = [&](const std::vector<std::vector<int>>& dims, auto type_of, const std::vector<Layout>& now) {
      for (std::size_t i = 0; i < dims.size(); ++i) {
        const int dim = dim_of(dims[i], factor);
        if (dim < 0) continue;
        const std::int64_t local = type_of(i).size(dim) / parts_of(now[i], dim, mesh_);
        if (local % mesh_.axes()[axis].size != 0 || local == 0) return false;
      }
      return true;
    };
    return divide(
               rule_.operands, [&](std::size_t i) -> const Type& { return *operands_[i].whole; }, choice_.operands) &&
           divide(
               rule_.results, [&](std::size_t i) -> const Type& { return results_[i]; }, choice_.results);
  }

  // True if partial sums pass through the op: all operands are partial sums; or all are scalars and one is, since a
  // replicated scalar becomes a partial sum without communication.
  bool may_stay_terms(std::size_t axis) const {
    if (!is_linear(call_.op)) return false;
    const auto is_terms = [&](const PlacedOperand& o) { return o.layout.at[axis] == kPartial; };
    if (std::all_of(operands_.begin(), operands_.end(), is_terms)) return !operands_.empty();
    const auto is_scalar = [](const PlacedOperand& o) { return o.whole->ndim() == 0; };
    return std::all_of(operands_.begin(), operands_.end(), is_scalar) &&
           std::any_of(operands_.begin(), operands_.end(), is_terms);
  }

  // The expected layout of a result: axes after this one follow the wish, else the operands' layouts. So its bytes
  // compare with those of the operands.
  Layout foreseen(std::size_t r, std::size_t axis) const {
    Layout layout = choice_.results[r];
    for (std::size_t later = axis + 1; later < mesh_.axes().size(); ++later) {
      int dim = preferred_[r].at[later];
      for (std::size_t i = 0; i < operands_.size() && dim == kAnywhere; ++i) {
        const int cut = operands_[i].layout.at[later];
        if (cut >= 0) dim = place(rule_.results[r], rule_.operands[i][static_cast<std::size_t>(cut)], true);
      }
      layout.at[later] = dim >= 0 ? dim : kWhole;
    }
    return layout;
  }

  // For scalars: a replicated factor times a partial sum is a partial sum.
  bool scales_terms(std::size_t axis) const {
    return call_.op.name == std::string_view("mul") && results_[0].ndim() == 0 &&
           std::ranges::count_if(operands_, [&](const PlacedOperand& o) { return o.layout.at[axis] == kPartial; }) == 1;
  }
  int operand_place(std::size_t i, int factor, std::size_t axis) const {
    if (factor == Choice::kTerms && !is_linear(call_.op)) return operands_[i].layout.at[axis];
    return place(rule_.operands[i], factor, false);
  }

  // Compared in order: parameters that move, bytes, replicated work.
  std::tuple<int, double, int> cost(int factor, std::size_t axis) const {
    int parameters = 0;
    double bytes = 0;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const PlacedOperand& operand = operands_[i];
      const int to = operand_place(i, factor, axis);
      const double local = local_bytes(*operand.whole, operand.layout, mesh_);
      const bool there = std::any_of(operand.also.begin(), operand.also.end(),
                                     [&](const Layout& layout) { return layout.at[axis] == to; });
      const double here = there ? 0 : moved(local, operand.layout.at[axis], to, size(axis));
      if (here > 0 && operand.stays) ++parameters;
      bytes += here;
    }
    for (std::size_t r = 0; r < results_.size(); ++r) {
      const int from = place(rule_.results[r], factor, true);
      const double whole = local_bytes(results_[r], foreseen(r, axis), mesh_);
      bytes += moved(from >= 0 ? whole / size(axis) : whole, from, preferred_[r].at[axis], size(axis));
    }
    return {parameters, bytes, factor == Choice::kNone ? 1 : 0};
  }

  void decide(std::size_t axis) {
    std::vector<int> candidates{Choice::kNone};
    const auto add = [&](const std::vector<int>& dims, int dim) {
      if (dim < 0 || dims[static_cast<std::size_t>(dim)] < 0) return;
      const int factor = dims[static_cast<std::size_t>(dim)];
      if (std::find(candidates.begin(), candidates.end(), factor) == candidates.end() && possible(factor, axis))
        candidates.push_back(factor);
    };
    for (std::size_t i = 0; i < operands_.size(); ++i) add(rule_.operands[i], operands_[i].layout.at[axis]);
    for (std::size_t r = 0; r < results_.size(); ++r) add(rule_.results[r], preferred_[r].at[axis]);
    if (may_stay_terms(axis) || scales_terms(axis)) candidates.push_back(Choice::kTerms);
    int best = candidates[0];
    for (const int factor : candidates) {
      if (cost(factor, axis) < cost(best, axis)) best = factor;
    }
    // A cast sets the type of a reduction, so partial sums are cast before they are reduced.
    if (candidates.back() == Choice::kTerms && call_.op.name == std::string_view("cast")) best = Choice::kTerms;
    choice_.factor.push_back(best);
    if (best >= 0 && kind(best) == Kind::local) choice_.local_factor = best;
    for (std::size_t i = 0; i < operands_.size(); ++i) choice_.operands[i].at[axis] = operand_place(i, best, axis);
    for (std::size_t r = 0; r < results_.size(); ++r) choice_.results[r].at[axis] = place(rule_.results[r], best, true);
  }

  const OpCall& call_;
  std::span<const Type> results_;
  std::span<const PlacedOperand> operands_;
  std::span<const PreferredLayout> preferred_;
  const Mesh& mesh_;
  bool fill_;
  ShardingRule rule_;
  Choice choice_;
};

}  // namespace

bool is_linear(const OpDef& op) {
  static constexpr std::array<std::string_view, 9> kLinear{"add",       "sub",        "neg",         "cast", "copy",
                                                           "transpose", "reduce_sum", "concatenate", "slice"};
  return std::find(kLinear.begin(), kLinear.end(), op.name) != kLinear.end();
}

PreferredLayout preferred_by_names(const Type& whole, std::span<const AxisRule> rules, const Mesh& mesh) {
  PreferredLayout preferred{std::vector<int>(mesh.axes().size(), kAnywhere)};
  if (!is_float(whole.dtype)) return preferred;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    for (const AxisRule& rule : rules) {
      if (rule.axis != mesh.axes()[axis].name) continue;
      for (const std::string& name : rule.names) {
        int dim = 0;
        while (dim < whole.ndim() && whole.name(dim) != name) ++dim;
        if (dim == whole.ndim()) continue;
        if (whole.size(dim) % (parts_of(preferred, dim, mesh) * mesh.axes()[axis].size) == 0) preferred.at[axis] = dim;
        break;
      }
    }
  }
  return preferred;
}

Choice choose(const OpCall& whole, std::span<const Type> results, std::span<const PlacedOperand> operands,
              std::span<const PreferredLayout> preferred, const Mesh& mesh, bool fill) {
  return Chooser(whole, results, operands, preferred, mesh, fill).run();
}

}  // namespace systole
