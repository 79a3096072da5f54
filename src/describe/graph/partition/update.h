#pragma once
// The graph of an update: norm, guard, clipping, and the optimizer's step of every parameter; not yet cut.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "describe/graph/partition/training.h"

namespace systole {

// The optimizer's moments of a parameter, by name.
std::vector<std::string> state_names(const UpdateRule& rule, const Parameter& p);

struct UpdateGraph {
  const UpdateRule& rule;
  std::span<const Parameter> trained;
  DType scalar;  // of norms and moments
  std::function<DType(const Parameter&)> gradient_type;
  bool squares_given = false;  // the sum of all squares is the input "square_sum"
};
// norm = |sum of gradients| / count; scale = min(1, clip / norm) / count; apply = norm is finite.
Graph update_graph(const UpdateGraph& update);

}  // namespace systole
