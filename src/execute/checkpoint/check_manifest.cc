// The rules that a manifest's body keeps, whoever wrote it.

#include <algorithm>
#include <set>

#include "execute/checkpoint/coding.h"
#include "execute/checkpoint/manifest.h"

namespace systole::checkpoint {

namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 59;  // so that bytes fit 64 bits for every dtype

template <typename... Args>
Error wrong(const TensorEntry& tensor, fmt::format_string<Args...> format, Args&&... args) {
  return error(ErrorKind::invalid, "tensor '{}': {}", tensor.name, fmt::format(format, std::forward<Args>(args)...));
}

Status check_piece(const Manifest& manifest, const TensorEntry& tensor, const Piece& piece) {
  auto inside = check_inside(piece.box, tensor.shape);
  if (!inside) return wrong(tensor, "{}", inside.error().message);
  if (piece.box.empty()) return wrong(tensor, "the piece {} holds nothing", to_string(piece.box));
  if (piece.chunk < 0 || piece.chunk >= static_cast<std::int64_t>(manifest.chunks.size())) {
    return wrong(tensor, "the piece {} lies in chunk {} of {}", to_string(piece.box), piece.chunk,
                 manifest.chunks.size());
  }
  const std::int64_t bytes = piece.box.num_elements() * size_of(tensor.dtype);
  const ChunkFile& chunk = manifest.chunks[static_cast<std::size_t>(piece.chunk)];
  if (piece.encoding != chunk.encoding()) {
    return wrong(tensor, "the piece {} is {} and lies in a chunk that is {}", to_string(piece.box),
                 name_of(piece.encoding), name_of(chunk.encoding()));
  }
  const std::int64_t room = chunk.raw_bytes().count();
  if (piece.offset < 0 || bytes > room || piece.offset > room - bytes) {
    return wrong(tensor, "the piece {} ({} bytes at {}) leaves its chunk of {} bytes", to_string(piece.box), bytes,
                 piece.offset, room);
  }
  return {};
}

bool overlap(const Box& a, const Box& b) {
  for (std::size_t d = 0; d < a.ndim(); ++d) {
    if (a.end[d] <= b.start[d] || b.end[d] <= a.start[d]) return false;
  }
  return true;
}

// Sweeps along the first dim; only pieces that are open there at the same time are compared.
Status check_no_overlap(const TensorEntry& tensor) {
  std::vector<const Box*> boxes, open;
  for (const Piece& piece : tensor.pieces) boxes.push_back(&piece.box);
  const auto begin = [](const Box* box) { return box->ndim() ? box->start[0] : 0; };
  std::sort(boxes.begin(), boxes.end(), [&](const Box* a, const Box* b) { return begin(a) < begin(b); });
  for (const Box* box : boxes) {
    std::erase_if(open, [&](const Box* other) { return other->ndim() && other->end[0] <= begin(box); });
    for (const Box* other : open) {
      if (overlap(*box, *other))
        return wrong(tensor, "the pieces {} and {} overlap", to_string(*other), to_string(*box));
    }
    open.push_back(box);
  }
  return {};
}

Status check_tensor(const Manifest& manifest, const TensorEntry& tensor) {
  const auto elements = checked_elements(tensor.shape);
  if (!elements || *elements > kMostElements)
    return wrong(tensor, "the shape {} is impossible", to_string(tensor.shape));
  std::int64_t held = 0;
  for (const Piece& piece : tensor.pieces) {
    TRY(check_piece(manifest, tensor, piece));
    held += piece.box.num_elements();
    if (held > *elements) break;  // so that the sum cannot overflow; some two of them overlap
  }
  TRY(check_no_overlap(tensor));
  if (held != *elements) return wrong(tensor, "the pieces cover {} of {} elements", held, *elements);
  return {};
}

// Its frames are as many as its raw bytes need, and together as long as its file.
Status check_coding(const ChunkFile& chunk) {
  if (!chunk.coding) return {};
  std::int64_t left = chunk.bytes.count();
  bool well = frames_of(chunk.coding->raw) == static_cast<std::int64_t>(chunk.coding->frames.size()) &&
              (chunk.coding->zstd || !chunk.coding->salt.empty());
  for (const std::int64_t frame : chunk.coding->frames) {
    well = well && frame >= 0 && frame <= left;
    if (well) left -= frame;
  }
  if (well && left == 0) return {};
  return error(ErrorKind::invalid, "chunk {}: {} frames for {} raw bytes in a file of {} cannot be", chunk.hash,
               chunk.coding->frames.size(), chunk.coding->raw.count(), chunk.bytes.count());
}

}  // namespace

Status check(const Manifest& manifest) {
  if (manifest.step < 0) return error(ErrorKind::invalid, "a checkpoint of step {}", manifest.step);
  if (!manifest.extra.is_null() && !manifest.extra.is_map())
    return error(ErrorKind::invalid, "extra is {}, not a map", manifest.extra.describe());
  for (const ChunkFile& chunk : manifest.chunks) TRY(check_coding(chunk));
  std::set<std::string_view> names;
  for (const TensorEntry& tensor : manifest.tensors) {
    if (tensor.name.empty()) return error(ErrorKind::invalid, "a tensor has no name");
    if (!names.insert(tensor.name).second) return wrong(tensor, "is there twice");
    TRY(check_tensor(manifest, tensor));
  }
  return {};
}

}  // namespace systole::checkpoint
