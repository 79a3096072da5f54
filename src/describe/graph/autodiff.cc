#include "describe/graph/autodiff.h"

#include <algorithm>

#include "describe/graph/autodiff_split.h"
#include "describe/graph/ops/ops.h"
#include "describe/graph/passes/rewrite.h"

namespace systole {

Differentiated differentiate(const Graph& loss, std::string_view loss_output, const RecomputePolicy& policy) {
  const auto is_loss = [&](const GraphOutput& output) { return output.name == loss_output; };
  const auto found = std::find_if(loss.outputs().begin(), loss.outputs().end(), is_loss);
  if (found == loss.outputs().end())
    fail(error(ErrorKind::not_found, "graph '{}' has no output '{}'", loss.name(), loss_output));
  const Type& type = loss.type(found->value);
  if (!is_float(type.dtype) || type.ndim() != 0)
    fail(error(ErrorKind::invalid, "the loss must be a float scalar, not {}", to_string(type)));

  std::vector<bool> wanted;
  for (const GraphInput& input : loss.inputs()) wanted.push_back(input.parameter && input.parameter->trainable);
  const std::vector<bool> available(loss.inputs().size(), true), cotangents(loss.outputs().size(), false);
  const int seed = static_cast<int>(found - loss.outputs().begin());
  Split parts = split(Request{loss, wanted, available, cotangents, seed, policy, false});

  // One gradient per trainable parameter, in order of declaration, zeros where the loss does not depend on it.
  Differentiated result{std::move(parts.forward), Graph(loss.name() + ".backward")};
  const std::vector<Value> gradients =
      inline_graph(result.backward, parts.backward, copy_inputs(result.backward, parts.backward));
  for (std::size_t i = 0; i < loss.inputs().size(); ++i) {
    if (!wanted[i]) continue;
    const Parameter& p = *loss.inputs()[i].parameter;
    const std::optional<int> g = parts.gradients[i];
    result.backward.output("gradient." + p.name,
                           g ? gradients[static_cast<std::size_t>(*g)] : constant(result.backward, p.type, 0));
  }
  return result;
}

}  // namespace systole
