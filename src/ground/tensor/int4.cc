#include "ground/tensor/int4.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace systole {
std::uint16_t to_half(float value) {
  std::uint16_t bits;
  store(DType::f16, reinterpret_cast<std::byte*>(&bits), 0, static_cast<double>(value));
  return bits;
}

float from_half(std::uint16_t bits) {
  return static_cast<float>(load(DType::f16, reinterpret_cast<const std::byte*>(&bits), 0));
}

namespace {

std::size_t panel_of(std::int64_t columns, std::int64_t row, std::int64_t group) {
  return static_cast<std::size_t>(row / kInt4Panel * (columns / kInt4Group) + group);
}

float code_of(float x, float minimum, float inverse) {
  return std::fmin(std::fmax(std::nearbyintf((x - minimum) * inverse), 0.0F), 15.0F);  // 0 of NaN: beyond f16
}

// Codes for a scale and a minimum, and the sum of squared errors.
float encode(std::span<const float, kInt4Group> x, Int4Block& block) {
  const float scale = from_half(block.scale), minimum = from_half(block.minimum);
  const float inverse = scale > 0 ? 1 / scale : 0;
  float wrong = 0;
  block.codes = {};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float code = code_of(x[i], minimum, inverse), off = x[i] - (code * scale + minimum);
    wrong += off * off;
    block.codes[i % 16] = static_cast<std::uint8_t>(block.codes[i % 16] | static_cast<int>(code) << (i / 16 * 4));
  }
  return wrong;
}

// Scale and minimum of the least squares for the codes that `block` has. False: its codes are all equal.
bool refit(std::span<const float, kInt4Group> x, Int4Block& block) {
  float sum = 0, squares = 0, products = 0, total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto code = static_cast<float>(block.codes[i % 16] >> (i / 16 * 4) & 15);
    sum += code;
    squares += code * code;
    products += code * x[i];
    total += x[i];
  }
  const auto n = static_cast<float>(kInt4Group);
  const float spread = n * squares - sum * sum;
  if (!(spread > 0)) return false;
  const float scale = (n * products - sum * total) / spread;
  block.scale = to_half(scale);
  block.minimum = to_half((total - scale * sum) / n);
  return scale > 0;
}

}  // namespace

const char* name_of_parameter(DType parameter) { return parameter == kInt4 ? "i4" : name_of(parameter); }

Int4Block quantize_group(std::span<const float, kInt4Group> x) {
  float low = x[0], high = x[0];
  bool finite = true;
  for (const float value : x) {
    low = std::min(low, value);
    high = std::max(high, value);
    finite = finite && std::isfinite(value);
  }
  Int4Block best;
  if (!finite) {
    best.scale = to_half(std::numeric_limits<float>::quiet_NaN());
    return best;
  }
  float least = std::numeric_limits<float>::infinity();
  const auto offer = [&](const Int4Block& block, float wrong) {
    if (wrong < least) best = block;
    least = std::min(least, wrong);
  };
  // The whole range, and narrower ones, which cut the outermost values and are finer inside.
  for (const float narrower : {0.0F, 0.05F, 0.1F, 0.15F}) {
    const float cut = (high - low) * narrower / 2;
    Int4Block block;
    block.minimum = to_half(low + cut);
    block.scale = to_half((high - low - 2 * cut) / 15);
    offer(block, encode(x, block));
    if (narrower == 0) best = block;  // where no error is a number: beyond f16
    if (refit(x, block)) offer(block, encode(x, block));
  }
  return best;
}

float value_of(const Int4Block& block, std::size_t i) {
  const auto code = static_cast<float>(block.codes[i % 16] >> (i / 16 * 4) & 15);
  // The product is exact: a code has 4 bits, a scale 11. So a fused operation gives the same.
  return code * from_half(block.scale) + from_half(block.minimum);
}

void put_block(const Int4Block& block, std::int64_t columns, std::int64_t row, std::int64_t group,
               std::span<std::uint8_t> codes, std::span<std::uint16_t> scales) {
  const std::size_t at = panel_of(columns, row, group), in_panel = static_cast<std::size_t>(row % kInt4Panel);
  std::uint8_t* const to = codes.data() + at * kInt4PanelBytes + in_panel * 4;
  for (std::size_t v = 0; v < 4; ++v) __builtin_memcpy(to + v * 64, block.codes.data() + v * 4, 4);
  scales[at * kInt4PanelScales + in_panel] = block.scale;
  scales[at * kInt4PanelScales + 16 + in_panel] = block.minimum;
}

Int4Block block_at(std::int64_t columns, std::int64_t row, std::int64_t group, std::span<const std::uint8_t> codes,
                   std::span<const std::uint16_t> scales) {
  const std::size_t at = panel_of(columns, row, group), in_panel = static_cast<std::size_t>(row % kInt4Panel);
  Int4Block block;
  block.scale = scales[at * kInt4PanelScales + in_panel];
  block.minimum = scales[at * kInt4PanelScales + 16 + in_panel];
  const std::uint8_t* const from = codes.data() + at * kInt4PanelBytes + in_panel * 4;
  for (std::size_t v = 0; v < 4; ++v) __builtin_memcpy(block.codes.data() + v * 4, from + v * 64, 4);
  return block;
}

}  // namespace systole
