#include "execute/checkpoint/pack.h"

#include <algorithm>
#include <map>

namespace systole::checkpoint {

namespace {
std::int64_t aligned(std::int64_t offset) { return (offset + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment; }
}  // namespace

std::vector<PackedChunk> pack(std::span<const TensorPart> parts, Bytes chunk_bytes) {
  std::vector<PackedChunk> chunks;
  std::map<int, std::size_t> open;  // group → the chunk being filled
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const std::int64_t element = size_of(parts[p].dtype);
    std::int64_t taken = 0;
    for (Box& box : cut(parts[p].box, std::max<std::int64_t>(1, chunk_bytes.count() / element))) {
      const std::int64_t bytes = box.num_elements() * element;
      auto slot = open.find(parts[p].group);
      if (slot == open.end() || aligned(chunks[slot->second].bytes) + bytes > chunk_bytes.count()) {
        chunks.emplace_back();
        slot = open.insert_or_assign(parts[p].group, chunks.size() - 1).first;
      }
      PackedChunk& chunk = chunks[slot->second];
      const std::int64_t offset = aligned(chunk.bytes);
      chunk.pieces.push_back({p, std::move(box),
                              parts[p].bytes.subspan(static_cast<std::size_t>(taken), static_cast<std::size_t>(bytes)),
                              offset});
      chunk.bytes = offset + bytes;
      taken += bytes;
    }
  }
  return chunks;
}

}  // namespace systole::checkpoint
