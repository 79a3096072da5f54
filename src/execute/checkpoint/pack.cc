#include "execute/checkpoint/pack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

namespace systole::checkpoint {

namespace {
constexpr std::array<std::byte, kPieceAlignment> kZeros{};
constexpr std::size_t kGathered = 256 << 10;  // bytes; longer runs are passed on without a copy

std::int64_t aligned(std::int64_t offset) { return (offset + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment; }
}  // namespace

std::vector<PackedChunk> pack(std::span<const TensorPart> parts, Bytes chunk_bytes) {
  std::vector<PackedChunk> chunks;
  std::map<int, std::size_t> open;  // group → the chunk being filled
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const std::int64_t element = size_of(parts[p].dtype);
    for (Box& box : cut(parts[p].box, std::max<std::int64_t>(1, chunk_bytes.count() / element))) {
      const std::int64_t bytes = box.num_elements() * element;
      auto slot = open.find(parts[p].group);
      if (slot == open.end() || aligned(chunks[slot->second].bytes) + bytes > chunk_bytes.count()) {
        chunks.emplace_back();
        slot = open.insert_or_assign(parts[p].group, chunks.size() - 1).first;
      }
      PackedChunk& chunk = chunks[slot->second];
      const std::int64_t offset = aligned(chunk.bytes);
      chunk.pieces.push_back({p, std::move(box), bytes, offset});
      chunk.bytes = offset + bytes;
    }
  }
  return chunks;
}

namespace {

using Take = std::function<Status(std::span<const std::byte>)>;

class Gatherer {
 public:
  explicit Gatherer(const Take& take) : take_(take) {}

  Status add(std::span<const std::byte> run) {
    if (gathered_.size() + run.size() > kGathered) TRY(flush());
    if (run.size() >= kGathered) return take_(run);
    const std::size_t at = gathered_.size();
    gathered_.resize(at + run.size());
    std::memcpy(gathered_.data() + at, run.data(), run.size());
    return {};
  }
  Status flush() {
    if (!gathered_.empty()) TRY(take_(gathered_));
    gathered_.clear();
    return {};
  }

 private:
  const Take& take_;
  std::vector<std::byte> gathered_;
};

Status for_each_span_of(const TensorPart& part, const Box& box, const Take& take) {
  const std::int64_t element = size_of(part.dtype);
  Gatherer gatherer(take);
  TRY(for_each_run(box, part.held.value_or(part.box), box, [&](const Run& run) -> Status {
    return gatherer.add(part.bytes.subspan(static_cast<std::size_t>(run.from * element),
                                           static_cast<std::size_t>(run.count * element)));
  }));
  return gatherer.flush();
}

}  // namespace

Status for_each_span(const PackedChunk& chunk, std::span<const TensorPart> parts, const Take& take) {
  std::int64_t at = 0;
  for (const PackedPiece& piece : chunk.pieces) {
    if (piece.offset > at)
      TRY(take(std::span<const std::byte>(kZeros).first(static_cast<std::size_t>(piece.offset - at))));
    TRY(for_each_span_of(parts[piece.part], piece.box, take));
    at = piece.offset + piece.bytes;
  }
  return {};
}

}  // namespace systole::checkpoint
