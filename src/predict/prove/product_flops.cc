// Counts convolutions as openxla/xla xla/service/hlo_cost_analysis.cc does: padding is not multiplied.

#include "predict/prove/product_flops.h"

#include <algorithm>

namespace systole::prove {
namespace {

double elements(const pjrt::HloShape& shape) {
  double count = 1;
  for (const std::int64_t size : shape.dims) count *= static_cast<double>(size);
  return count;
}

// Counts pairs of kernel and result positions where the kernel meets an element, not padding or dilation gaps.
double meetings(const pjrt::HloWindow& window, std::int64_t input, std::int64_t output) {
  const bool plain = window.stride == 1 && window.dilation == 1 && window.base_dilation == 1 &&
                     window.padding_low == 0 && window.padding_high == 0;
  constexpr double kMost = 1e7;
  if (plain || static_cast<double>(window.size) * static_cast<double>(output) > kMost)
    return static_cast<double>(window.size) * static_cast<double>(output);
  double count = 0;
  for (std::int64_t k = 0; k < window.size; ++k) {
    for (std::int64_t o = 0; o < output; ++o) {
      const std::int64_t at = o * window.stride - window.padding_low + k * window.dilation;
      if (at < 0 || window.base_dilation < 1 || at % window.base_dilation != 0) continue;
      if (at / window.base_dilation < input) ++count;
    }
  }
  return count;
}

std::int64_t dim_of(const pjrt::HloShape& shape, std::int64_t dim) {
  return dim >= 0 && dim < static_cast<std::int64_t>(shape.dims.size()) ? shape.dims[static_cast<std::size_t>(dim)] : 0;
}

}  // namespace

double product_flops(const pjrt::HloInstruction& product, const pjrt::HloInstruction* left) {
  if (left == nullptr) return 0;
  if (product.opcode == "dot") {
    double flops = 2 * elements(product.shape);
    for (const std::int64_t dim : product.contracted) flops *= static_cast<double>(dim_of(left->shape, dim));
    return flops;
  }
  if (product.opcode != "convolution") return 0;
  const pjrt::HloConvolution& dims = product.convolution;
  double flops = 2 * static_cast<double>(dim_of(left->shape, dims.input_feature)) *
                 static_cast<double>(dim_of(product.shape, dims.output_feature)) *
                 static_cast<double>(dim_of(left->shape, dims.input_batch));
  flops /= static_cast<double>(std::max<std::int64_t>(1, dims.feature_groups) *
                               std::max<std::int64_t>(1, dims.batch_groups));
  const std::size_t spatial = std::min({product.window.size(), dims.input_spatial.size(), dims.output_spatial.size()});
  for (std::size_t i = 0; i < spatial; ++i)
    flops *= meetings(product.window[i], dim_of(left->shape, dims.input_spatial[i]),
                      dim_of(product.shape, dims.output_spatial[i]));
  return flops;
}

}  // namespace systole::prove
