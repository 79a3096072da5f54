#include "describe/partition/moves.h"

#include <algorithm>
#include <optional>

#include "describe/ir/rewrite.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Greedy: moves that send nothing and shrink the value come first, moves that grow it last.
class Mover {
 public:
  Mover(const Type& whole, const Layout& from, const Layout& to, const Mesh& mesh)
      : whole_(whole), to_(to), mesh_(mesh), now_(from), sizes_(local_type(whole, from, mesh).shape) {
    for (int dim = 0; dim < whole.ndim(); ++dim) {
      const std::size_t d = static_cast<std::size_t>(dim);
      const std::vector<int> before = axes_on(from, dim), after = axes_on(to, dim);
      const bool same = before == after;
      filled_.push_back(whole.shape[d] % product(before) != 0 || whole.shape[d] % product(after) != 0);
      kept_.push_back(
          same ? before.size()
          : filled_.back()
              ? 0
              : static_cast<std::size_t>(std::mismatch(before.begin(), before.end(), after.begin(), after.end()).first -
                                         before.begin()));
    }
  }

  std::vector<Move> run() {
    while (!(now_ == to_) || anything_leaves()) {
      const bool moved = each([&](int a) { return take(a); }) || each([&](int a) { return scatter(a); }) ||
                         each([&](int a) { return exchange(a); }) || each([&](int a) { return keep_first(a); }) ||
                         each([&](int a) { return wanted(a) < 0 && gather(a); }) ||
                         each([&](int a) { return gather(a); }) || each([&](int a) { return reduce(a); });
      CHECK(moved, "no way from {} to {} of {}", to_string(now_, whole_.ndim(), mesh_),
            to_string(to_, whole_.ndim(), mesh_), to_string(whole_));
    }
    return std::move(moves_);
  }

 private:
  using Kind = Move::Kind;
  static constexpr int kWhole = Layout::kWhole, kPartial = Layout::kPartial;

  std::int64_t size(int axis) const { return mesh_.axes()[static_cast<std::size_t>(axis)].size; }
  int now(int axis) const { return now_.at[static_cast<std::size_t>(axis)]; }
  int wanted(int axis) const { return to_.at[static_cast<std::size_t>(axis)]; }
  std::vector<int> axes_on(const Layout& layout, int dim) const {
    std::vector<int> axes;
    for (std::size_t a = 0; a < layout.at.size(); ++a) {
      if (layout.at[a] == dim) axes.push_back(static_cast<int>(a));
    }
    return axes;
  }
  std::int64_t product(const std::vector<int>& axes) const {
    std::int64_t n = 1;
    for (const int a : axes) n *= size(a);
    return n;
  }
  bool filled(int dim) const { return filled_[static_cast<std::size_t>(dim)]; }

  // Axes leave a dim innermost first, down to those that stay.
  bool may_leave(int axis) const {
    const int dim = now(axis);
    if (dim < 0) return false;
    const std::vector<int> axes = axes_on(now_, dim);
    return axes.size() > kept_[static_cast<std::size_t>(dim)] && axes.back() == axis;
  }
  bool anything_leaves() const {
    for (int a = 0; a < static_cast<int>(now_.at.size()); ++a) {
      if (may_leave(a)) return true;
    }
    return false;
  }
  // An axis may come once exactly the axes before it in the final layout are on the dim.
  bool may_come(int axis) const {
    const int dim = wanted(axis);
    if (dim < 0 || now(axis) == dim) return false;
    const std::size_t here = axes_on(now_, dim).size();
    const std::vector<int> after = axes_on(to_, dim);
    return here == kept_[static_cast<std::size_t>(dim)] && here < after.size() && after[here] == axis;
  }

  template <typename Try>
  bool each(Try attempt) {
    for (int a = 0; a < static_cast<int>(now_.at.size()); ++a) {
      if ((now(a) != wanted(a) || may_leave(a)) && attempt(a)) return true;
    }
    return false;
  }

  void fill(int dim) {
    const std::int64_t n = whole_.size(dim), parts = product(axes_on(to_, dim));
    if (!filled(dim) || n % parts == 0 || !axes_on(now_, dim).empty()) return;
    std::int64_t& here = sizes_[static_cast<std::size_t>(dim)];
    here = parts * ceil_div(n, parts);
    moves_.push_back({Kind::pad, -1, dim, -1, here});
  }
  void come(int axis, Kind kind, int from_dim = -1) {
    const int dim = wanted(axis);
    fill(dim);
    sizes_[static_cast<std::size_t>(dim)] /= size(axis);
    moves_.push_back({kind, axis, dim, from_dim, 0});
    now_.at[static_cast<std::size_t>(axis)] = dim;
    ++kept_[static_cast<std::size_t>(dim)];
  }

  bool take(int axis) {
    if (now(axis) != kWhole || !may_come(axis)) return false;
    come(axis, Kind::take_part);
    return true;
  }
  bool scatter(int axis) {
    if (now(axis) != kPartial || !may_come(axis)) return false;
    come(axis, Kind::reduce_scatter);
    return true;
  }
  bool exchange(int axis) {
    if (!may_leave(axis) || !may_come(axis) || filled(now(axis)) || filled(wanted(axis))) return false;
    const int from_dim = now(axis);
    sizes_[static_cast<std::size_t>(from_dim)] *= size(axis);
    come(axis, Kind::all_to_all, from_dim);
    return true;
  }
  bool keep_first(int axis) {
    if (now(axis) != kWhole || wanted(axis) != kPartial) return false;
    moves_.push_back({Kind::keep_first, axis, -1, -1, 0});
    now_.at[static_cast<std::size_t>(axis)] = kPartial;
    return true;
  }
  bool gather(int axis) {
    if (!may_leave(axis)) return false;
    const int dim = now(axis);
    std::int64_t& here = sizes_[static_cast<std::size_t>(dim)];
    here *= size(axis);
    moves_.push_back({Kind::all_gather, axis, dim, -1, 0});
    now_.at[static_cast<std::size_t>(axis)] = kWhole;
    if (axes_on(now_, dim).empty() && here > whole_.size(dim)) {
      here = whole_.size(dim);
      moves_.push_back({Kind::trim, -1, dim, -1, here});
    }
    return true;
  }
  bool reduce(int axis) {
    if (now(axis) != kPartial || wanted(axis) == kPartial) return false;
    moves_.push_back({Kind::all_reduce, axis, -1, -1, 0});
    now_.at[static_cast<std::size_t>(axis)] = kWhole;
    return true;
  }

  const Type& whole_;
  const Layout& to_;
  const Mesh& mesh_;
  Layout now_;
  Shape sizes_;
  std::vector<bool> filled_;       // per dim: one of the layouts needs padding
  std::vector<std::size_t> kept_;  // per dim: the number of its axes that stay
  std::vector<Move> moves_;
};

// A shard of a constant is a smaller constant; the whole is not built.
std::optional<Value> part_of_constant(Value value, int dim, std::int64_t parts) {
  const NodeId made = value.graph->producer(value.id);
  if (!made.valid() || !is(value.graph->node(made), "constant")) return std::nullopt;
  Type part = value.type();
  part.shape[static_cast<std::size_t>(dim)] /= parts;
  return constant(*value.graph, part, value.graph->node(made).attrs.get_double("value"));
}

}  // namespace

std::vector<Move> moves_between(const Type& whole, const Layout& from, const Layout& to, const Mesh& mesh) {
  if (from == to) return {};
  return Mover(whole, from, to, mesh).run();
}

Value build_moves(Value value, std::span<const Move> moves, const Mesh& mesh,
                  const std::function<Value(int axis)>& coordinate) {
  for (const Move& move : moves) {
    const bool over_axis = move.axis >= 0;
    const std::string axis = over_axis ? mesh.axes()[static_cast<std::size_t>(move.axis)].name : "";
    const std::int64_t parts = over_axis ? mesh.axes()[static_cast<std::size_t>(move.axis)].size : 1;
    switch (move.kind) {
      case Move::Kind::all_reduce: value = all_reduce(value, axis, parts); break;
      case Move::Kind::reduce_scatter: value = reduce_scatter(value, axis, parts, move.dim); break;
      case Move::Kind::all_gather: value = all_gather(value, axis, parts, move.dim); break;
      case Move::Kind::all_to_all: value = all_to_all(value, axis, parts, move.dim, move.from_dim); break;
      case Move::Kind::take_part: {
        const auto same = part_of_constant(value, move.dim, parts);
        value = same ? *same : take_part(value, coordinate(move.axis), move.dim, parts);
        break;
      }
      case Move::Kind::keep_first: {
        const Value place = coordinate(move.axis);
        const Value first = compare(place, full_like(place, 0), "eq");
        const Type like = value.type();  // a copy: the graph grows below
        value = select(broadcast_scalar(first, like), value, full_like(value, 0));
        break;
      }
      case Move::Kind::pad: {
        Ints low(value.type().shape.size(), 0), high = low;
        high[static_cast<std::size_t>(move.dim)] = move.size - value.size(move.dim);
        value = pad(value, low, high, 0);
        break;
      }
      case Move::Kind::trim: value = slice_dim(value, move.dim, 0, move.size); break;
    }
  }
  return value;
}

}  // namespace systole
