#pragma once
// Reverse-mode differentiation, graph to graph. The result is two graphs, because a training step runs them as two
// functions (a pipeline puts other work between them): `forward` gives the loss and the residuals, `backward` takes the
// residuals, and whatever inputs it needs again, to the gradients.
//
// A `repeat` becomes a repeat with more stacked outputs (the residuals of each iteration) and a repeat in reverse.
// Which values become residuals is the recompute policy's choice and nothing else's: what is not kept is built again in
// the backward graph from what is (Chen et al., arXiv:1604.06174). Values that only move or convert what is at hand
// anyway (casts of parameters, broadcasts, constants) are never kept.

#include <span>
#include <string>
#include <vector>

#include "describe/graph/ir.h"

namespace systole {

struct RecomputePolicy {
  enum class Kind {
    none,       // keep everything that the gradients ask for
    attention,  // run attention again: keep q, k, v, not its output
    block,      // keep only what a block of a repeat is given
    named,      // keep, inside a block, only the values of these names
  } kind = Kind::none;
  std::vector<std::string> names;
};

struct Differentiated {
  Graph forward;   // inputs of `loss`; its outputs, then residuals named "residual.<n>"
  Graph backward;  // inputs, by name: residuals and inputs of `loss`; outputs "gradient.<parameter>" in order of
                   // declaration
};

// The gradient of the sum in output `loss_output` (a float scalar) with respect to every trainable parameter, in the
// parameter's type. A frozen parameter gets no gradient op; a parameter that the loss does not depend on gets zeros.
// Errors: Failure(invalid) naming an op on the path that has no gradient.
Differentiated differentiate(const Graph& loss, std::string_view loss_output, const RecomputePolicy& policy);

// The same of one chunk of a model (partition/chunks.h): `backward` takes "cotangent.<output>" of the outputs in
// `given` that depend on what is wanted, and gives "gradient.<input>" of the inputs in `from` too, behind those of
// parameters. `loss_output` may be empty: the loss is in another chunk. Errors: Failure(not_found): no such output.
Differentiated differentiate_chunk(const Graph& chunk, std::string_view loss_output, std::span<const std::string> from,
                                   std::span<const std::string> given, const RecomputePolicy& policy);

// The float outputs that depend on a trainable parameter or on one of the inputs in `from`.
std::vector<std::string> trained_outputs(const Graph& chunk, std::span<const std::string> from);

}  // namespace systole
