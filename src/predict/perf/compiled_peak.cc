#include "predict/perf/compiled_peak.h"

#include <algorithm>
#include <array>

#include "describe/program/memory.h"

namespace systole {
namespace {

struct Busiest {
  int when = 0;
  Bytes alive;
};

Busiest busiest(const CompiledBuffers& held) {
  std::vector<std::int64_t> change(static_cast<std::size_t>(held.end) + 2, 0);
  for (const CompiledBuffer& buffer : held.temporaries) {
    change[static_cast<std::size_t>(buffer.from)] += buffer.bytes.count();
    change[static_cast<std::size_t>(buffer.to) + 1] -= buffer.bytes.count();
  }
  std::int64_t alive = 0, most = -1;
  int when = 0;
  for (int t = 0; t <= held.end; ++t) {
    alive += change[static_cast<std::size_t>(t)];
    if (alive <= most) continue;
    most = alive;
    when = t;
  }
  return {when, Bytes(std::max<std::int64_t>(most, 0))};
}

// Size of a heap that holds all of them, each at one offset.
Bytes heap_of(const CompiledBuffers& held, const CompilerLayout& layout) {
  std::vector<Block> blocks;
  for (const CompiledBuffer& buffer : held.temporaries)
    if (buffer.bytes.count() > 0) blocks.push_back({buffer.bytes, {{buffer.from, buffer.to}}});
  return place_blocks(blocks, layout.alignment);
}

}  // namespace

CompiledPeak compiled_peak(const Program& program, const Function& step, const CompilerLayout& layout) {
  const CompiledBuffers held = compiled_buffers(program, step, layout);
  const Busiest at_most = busiest(held);
  CompiledPeak peak;
  peak.arguments = held.arguments;
  peak.outputs = held.outputs;
  std::array<Bytes, kNumPeakOwners> sums{};
  Bytes of_layer;
  for (const CompiledBuffer& buffer : held.temporaries) {
    if (buffer.from > at_most.when || buffer.to < at_most.when) continue;
    sums[static_cast<std::size_t>(buffer.owner)] += buffer.bytes;
    if (buffer.depth > 0) of_layer += buffer.bytes;
    peak.buffers.push_back({buffer.name, buffer.type, buffer.owner, buffer.bytes});
  }
  peak.gaps =
      std::max({heap_of(held, layout) - at_most.alive, of_layer * layout.layer_gaps, at_most.alive * layout.gaps});
  peak.temporaries = at_most.alive + peak.gaps;
  if (peak.temporaries <= layout.on_chip) {
    peak.on_chip = peak.temporaries;
    peak.temporaries = peak.gaps = Bytes();
    peak.buffers.clear();
    return peak;
  }
  const auto larger = [](const auto& a, const auto& b) { return a.bytes > b.bytes; };
  std::ranges::stable_sort(peak.buffers, larger);
  for (std::size_t o = 0; o < sums.size(); ++o)
    if (sums[o].count() > 0) peak.terms.push_back({static_cast<PeakOwner>(o), sums[o]});
  std::ranges::stable_sort(peak.terms, larger);
  return peak;
}

}  // namespace systole
