#pragma once
// The graph of an update, before partitioning: norm, guard, clipping, and the optimizer step of every parameter.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "describe/partition/training.h"

namespace systole {

// The names of a parameter's optimizer moments.
std::vector<std::string> state_names(const UpdateRule& rule, const Parameter& p);

struct UpdateGraph {
  const UpdateRule& rule;
  std::span<const Parameter> trained;
  DType scalar;  // of norms and moments
  std::function<DType(const Parameter&)> gradient_type;
  bool squares_given = false;  // the input "square_sum" is the sum of all squares
};
// norm = |sum of gradients| / count; scale = min(1, clip / norm) / count; apply = norm is finite.
Graph update_graph(const UpdateGraph& update);

}  // namespace systole
