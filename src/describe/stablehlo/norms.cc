// rms_norm, layer_norm and their gradients (describe/ops/rms_norm.cc, layer_norm.cc), all in f32 (f64 for f64).
// Gradients use the statistics saved by the forward pass.

#include "describe/stablehlo/lower_op.h"
#include "describe/stablehlo/rows.h"

namespace systole::stablehlo {
namespace {

Ssa times(Builder& b, const Ssa& x, const Ssa& y) { return b.binary("multiply", x, y); }
Ssa times_rows(Builder& b, const Ssa& x, const Ssa& row) { return times(b, x, along_rows(b, row, x.type)); }
Ssa less_rows(Builder& b, const Ssa& x, const Ssa& row) { return b.binary("subtract", x, along_rows(b, row, x.type)); }

// A scale or bias in x's type, broadcast along its rows.
Ssa vector_for(Builder& b, const Ssa& vector, const Ssa& x) {
  return along_last(b, b.convert(vector, x.type.dtype), x.type);
}

// 1 / sqrt(mean(x²) + eps) of each row.
Ssa rstd_of(Builder& b, const Ssa& x, const NodeCall& call) {
  const Ssa mean = mean_last(b, times(b, x, x));
  return b.unary("rsqrt", b.binary("add", mean, fill_like(b, mean, call.node.attrs.get_double("eps"))));
}

std::vector<Ssa> rms_norm(Builder& b, const NodeCall& call) {
  const Ssa x = wide(b, call.operands[0]), rstd = rstd_of(b, x, call);
  const Ssa y = times(b, times_rows(b, x, rstd), vector_for(b, call.operands[1], x));
  return {b.convert(y, call.results[0].dtype), rstd};
}

// rstd (h - n mean(h n)); `centred` (layer_norm): also minus rstd mean(h).
Ssa input_gradient(Builder& b, const Ssa& h, const Ssa& n, const Ssa& rstd, bool centred) {
  const Ssa of_n = times_rows(b, n, mean_last(b, times(b, h, n)));
  const Ssa rest = centred ? less_rows(b, h, mean_last(b, h)) : h;
  return times_rows(b, b.binary("subtract", rest, of_n), rstd);
}

std::vector<Ssa> rms_norm_grad(Builder& b, const NodeCall& call) {
  const Ssa x = wide(b, call.operands[0]), &rstd = call.operands[2], g = wide(b, call.operands[3]);
  const Ssa n = times_rows(b, x, rstd), h = times(b, g, vector_for(b, call.operands[1], x));
  std::vector<Ssa> results{b.convert(input_gradient(b, h, n, rstd, false), call.results[0].dtype)};
  if (call.node.attrs.flag("input_only")) return results;
  results.push_back(b.convert(sum_rows(b, times(b, g, n)), call.results[1].dtype));
  return results;
}

std::vector<Ssa> layer_norm(Builder& b, const NodeCall& call) {
  const Ssa x = wide(b, call.operands[0]), mean = mean_last(b, x), centred = less_rows(b, x, mean);
  const Ssa rstd = rstd_of(b, centred, call);
  const Ssa y = times(b, times_rows(b, centred, rstd), vector_for(b, call.operands[1], x));
  const Ssa moved = b.binary("add", y, vector_for(b, call.operands[2], x));
  return {b.convert(moved, call.results[0].dtype), mean, rstd};
}

std::vector<Ssa> layer_norm_grad(Builder& b, const NodeCall& call) {
  const Ssa x = wide(b, call.operands[0]), &mean = call.operands[2], &rstd = call.operands[3];
  const Ssa g = wide(b, call.operands[4]);
  const Ssa n = times_rows(b, less_rows(b, x, mean), rstd), h = times(b, g, vector_for(b, call.operands[1], x));
  std::vector<Ssa> results{b.convert(input_gradient(b, h, n, rstd, true), call.results[0].dtype)};
  if (call.node.attrs.flag("input_only")) return results;
  results.push_back(b.convert(sum_rows(b, times(b, g, n)), call.results[1].dtype));
  results.push_back(b.convert(sum_rows(b, g), call.results[2].dtype));
  return results;
}

}  // namespace

std::vector<OpLowering> norm_lowerings() {
  return {{"rms_norm", rms_norm},
          {"rms_norm_grad", rms_norm_grad},
          {"layer_norm", layer_norm},
          {"layer_norm_grad", layer_norm_grad}};
}

}  // namespace systole::stablehlo
