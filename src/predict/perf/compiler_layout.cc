#include "predict/perf/compiler_layout.h"

#include <algorithm>

namespace systole {
namespace {

std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

}  // namespace

// From the dumps of libtpu 0.0.51 for the fitted rows of data/xla/matrix.csv, 2026-11-22.
CompilerLayout layout_of_compiler(std::string_view plugin, std::string_view chip) {
  if (plugin == "gpu") {
    CompilerLayout layout{.alignment = 256};
    layout.zeros_at_once = layout.products_read_places = layout.wide_functions = layout.gathers_outermost =
        layout.sends_next_round = true;
    return layout;
  }
  if (plugin != "tpu")
    fail(error(ErrorKind::not_found, "nothing is known of how the compiler of '{}' lays out memory", plugin));
  CompilerLayout layout{.sublanes = 8, .lanes = 128, .alignment = 512, .hoists_casts = true};
  layout.joins_up_to = Bytes(std::int64_t{120} << 20);
  layout.whole_groups_wait = chip == "v5e" || chip == "v6e";
  // The largest use seen, of 128 MiB (v5e, v6e) and of 64.
  layout.on_chip = Bytes(std::int64_t{chip == "v5e"     ? 112
                                      : chip == "v6e"   ? 96
                                      : chip == "v5p"   ? 45
                                      : chip == "tpu7x" ? 64
                                                        : 0}
                         << 20);
  layout.puts_off_head = !layout.whole_groups_wait;
  layout.layer_gaps = 0.1;
  layout.gaps = chip == "tpu7x" ? 0.06 : 0;
  return layout;
}

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
