#pragma once
// How one op is cut over the axes of a mesh: axis by axis, the factor of its sharding rule that moves fewest bytes.

#include <optional>
#include <span>
#include <vector>

#include "describe/graph/op.h"
#include "describe/graph/partition/layout.h"

namespace systole {

// Which dim an axis cuts, where a tensor has one of these names: the first name in the list that it has.
struct AxisRule {
  std::string axis;
  std::vector<std::string> names;
};

struct PlacedOperand {
  const Type* whole;
  Layout layout;
  bool stays = false;             // a parameter: where it is cut it stays cut, however few bytes it has
  std::vector<Layout> also = {};  // as which it is there already, for another reader
};

// Per axis of the mesh what is wished for: a dim, kWhole, kPartial, or that nothing is.
constexpr int kAnywhere = -3;
using Wish = Layout;

// What the rules say of a tensor: the dim whose name comes first in an axis's list and that divides.
Wish wish_by_names(const Type& whole, std::span<const AxisRule> rules, const Mesh& mesh);

struct Choice {
  static constexpr int kNone = -1;   // every device does it all
  static constexpr int kTerms = -2;  // the operands are terms of a sum, and so are the results
  std::vector<int> factor;           // per axis: of the rule, kNone or kTerms
  std::vector<Layout> operands, results;
  int local_factor = -1;  // cut by a local rewrite; -1: none
};

// `fill`: a dim may be cut that leaves a rest, for zeros behind it change no result (updates are such).
Choice choose(const OpCall& whole, std::span<const Type> results, std::span<const PlacedOperand> operands,
              std::span<const Wish> wishes, const Mesh& mesh, bool fill);

// Sums of operands give sums of results: f(a + b) = f(a) + f(b), of all operands together.
bool is_linear(const OpDef& op);

}  // namespace systole
