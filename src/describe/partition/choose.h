#pragma once
// Chooses the sharding of one op: axis by axis, the factor of its sharding rule that moves the fewest bytes.

#include <optional>
#include <span>
#include <vector>

#include "describe/ir/op.h"
#include "describe/program/layout.h"

namespace systole {

// The names of the dims that a mesh axis shards; in a tensor, the first of them that it has.
struct AxisRule {
  std::string axis;
  std::vector<std::string> names;
};

struct PlacedOperand {
  const Type* whole;
  Layout layout;
  bool stays = false;             // a parameter: its sharding is kept, however small it is
  std::vector<Layout> also = {};  // other layouts that already exist, for other readers
};

// A preferred layout. Per mesh axis: a dim, kWhole, kPartial, or kAnywhere (no preference).
constexpr int kAnywhere = -3;
using PreferredLayout = Layout;

// The preference of the rules: per axis the first named dim that the tensor has, if its size divides evenly.
PreferredLayout preferred_by_names(const Type& whole, std::span<const AxisRule> rules, const Mesh& mesh);

struct Choice {
  static constexpr int kNone = -1;   // replicated: every device does all the work
  static constexpr int kTerms = -2;  // operands and results are partial sums
  std::vector<int> factor;           // per axis: a factor of the rule, kNone or kTerms
  std::vector<Layout> operands, results;
  int local_factor = -1;  // the factor that needs a local rewrite; -1: none
};

// `fill`: dims may be sharded unevenly. REQUIRES: padding with zeros changes no result (as in updates).
Choice choose(const OpCall& whole, std::span<const Type> results, std::span<const PlacedOperand> operands,
              std::span<const PreferredLayout> preferred, const Mesh& mesh, bool fill);

// f(a + b) = f(a) + f(b), for all operands together.
bool is_linear(const OpDef& op);

}  // namespace systole
