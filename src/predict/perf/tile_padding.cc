#include "predict/perf/tile_padding.h"

#include <algorithm>

namespace systole {
namespace {

std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

}  // namespace

Bytes padded(const Type& type, const CompilerLayout& layout, int outer) {
  const std::int64_t grain = bytes_of(type.dtype, {1}).count();
  if (layout.lanes == 1 || type.ndim() == 0) return Bytes(rounded_up(type.bytes().count(), layout.alignment));
  if (type.ndim() == 1) return Bytes(rounded_up(type.size(0), layout.sublanes * layout.lanes) * grain);
  std::int64_t best = -1;
  for (int minor = 0; minor < type.ndim(); ++minor) {
    for (int second = 0; second < type.ndim(); ++second) {
      if (second == minor || minor == outer || type.size(minor) == 0 || type.size(second) == 0) continue;
      const std::int64_t rest = type.num_elements() / type.size(minor) / type.size(second);
      const std::int64_t all =
          rest * rounded_up(type.size(minor), layout.lanes) * rounded_up(type.size(second), layout.sublanes);
      if (best < 0 || all < best) best = all;
    }
  }
  return Bytes(rounded_up(std::max<std::int64_t>(best, 0) * grain, layout.alignment));
}

Bytes padded_heads(const Type& type, const CompilerLayout& layout) {
  if (type.ndim() == 0 || layout.lanes == 1) return padded(type, layout);
  const std::int64_t head = type.size(type.ndim() - 1);
  return head == 0 ? Bytes() : Bytes(type.bytes().count() / head * rounded_up(head, layout.lanes));
}

}  // namespace systole
