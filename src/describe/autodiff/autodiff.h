#pragma once
// Reverse-mode differentiation, graph to graph. It builds two graphs, because a training step runs them as two
// functions and a pipeline schedules other work between them. `forward` computes the loss and the residuals. `backward`
// computes the gradients from the residuals and the inputs that it reads again.
//
// A `repeat` becomes a forward repeat with more stacked outputs (the residuals of each iteration) and a reversed
// repeat. In the body of a repeat the recompute policy decides which values are residuals; all others are recomputed
// in the backward graph from those (Chen et al., arXiv:1604.06174). Outside of repeats every value that a gradient
// reads is a residual. Values that only move or convert available data (casts of parameters, broadcasts, constants) are
// never residuals.

#include <span>
#include <string>
#include <vector>

#include "describe/ir/ir.h"

namespace systole {

struct RecomputePolicy {
  enum class Kind {
    none,       // keep every value that the gradients read
    attention,  // recompute attention: keep q, k, v, not its output
    block,      // keep only the inputs of the body of a repeat
    named,      // inside a body, keep only the values with these names
  } kind = Kind::none;
  std::vector<std::string> names;
};

struct Differentiated {
  Graph forward;   // inputs: those of `loss`; outputs: those of `loss`, then residuals "residual.<n>"
  Graph backward;  // inputs, by name: residuals, inputs of `loss`; outputs: "gradient.<parameter>", as declared
};

// The gradient of output `loss_output` (a float scalar, a sum) with respect to every trainable parameter, in the
// parameter's type. A frozen parameter gets no gradient op; a parameter that the loss does not depend on gets zeros.
// Errors: Failure(invalid), which names an op on the path that has no gradient; Failure(not_found): no such output.
Differentiated differentiate(const Graph& loss, std::string_view loss_output, const RecomputePolicy& policy);

// The same for one chunk of a model (partition/chunks.h). `backward` takes "cotangent.<output>" for each output in
// `given` that depends on a differentiated input. It also gives "gradient.<input>" for the inputs in `from`, after the
// gradients of parameters. An empty `loss_output` means that the loss is in another chunk. Errors: also
// Failure(not_found): no such output.
Differentiated differentiate_chunk(const Graph& chunk, std::string_view loss_output, std::span<const std::string> from,
                                   std::span<const std::string> given, const RecomputePolicy& policy);

// The names of the float outputs that depend on a trainable parameter or on an input in `from`.
std::vector<std::string> trained_outputs(const Graph& chunk, std::span<const std::string> from);

}  // namespace systole
