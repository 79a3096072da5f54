// The rules for a manifest's body, whoever wrote it.

#include <algorithm>
#include <limits>
#include <set>
#include <span>

#include "execute/checkpoint/coding.h"
#include "execute/checkpoint/manifest.h"

namespace systole::checkpoint {

namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 59;  // so that bytes fit 64 bits for every dtype

template <typename... Args>
Error wrong(const TensorEntry& tensor, fmt::format_string<Args...> format, Args&&... args) {
  return error(ErrorKind::invalid, "tensor '{}': {}", tensor.name, fmt::format(format, std::forward<Args>(args)...))
      .about(tensor.name);
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

using Boxes = std::span<const Box*>;

// Sorts the boxes along `dim` and cuts the list wherever no box crosses: the sizes of the groups.
std::vector<std::size_t> groups_along(std::size_t dim, Boxes boxes) {
  std::ranges::sort(boxes, {}, [dim](const Box* box) { return box->start[dim]; });
  std::vector<std::size_t> sizes;
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  for (const Box* box : boxes) {
    if (box->start[dim] >= end) sizes.push_back(0);
    ++sizes.back();
    end = std::max(end, box->end[dim]);
  }
  return sizes;
}

// The pieces of a real writer form a grid whose cells may be cut again. So a sweep along each dim separates them into
// disjoint groups, and each group again, until every piece is alone; groups that cannot be separated are compared in
// pairs. The work is bounded: no writer makes pieces that need more.
Status check_no_overlap(const TensorEntry& tensor, std::span<const Piece> pieces) {
  constexpr std::size_t kMostSweeps = 16, kMostPairs = std::size_t{1} << 22;
  std::vector<const Box*> boxes;
  for (const Piece& piece : pieces) boxes.push_back(&piece.box);
  const std::size_t ndim = tensor.shape.size();
  std::size_t swept = 0, pairs = 0;
  for (std::vector<Boxes> left{boxes}; !left.empty();) {
    const Boxes group = left.back();
    left.pop_back();
    if (group.size() < 2) continue;
    bool cut = false;
    for (std::size_t dim = 0; dim < ndim && !cut; ++dim) {
      swept += group.size();
      const std::vector<std::size_t> sizes = groups_along(dim, group);
      cut = sizes.size() > 1;
      for (std::size_t at = 0, g = 0; cut && g < sizes.size(); at += sizes[g++])
        left.push_back(group.subspan(at, sizes[g]));
    }
    for (std::size_t a = 0; !cut && a < group.size(); ++a) {
      for (std::size_t b = 0; b < a && pairs <= kMostPairs; ++b, ++pairs) {
        if (overlap(*group[a], *group[b]))
          return wrong(tensor, "the pieces {} and {} overlap", to_string(*group[b]), to_string(*group[a]));
      }
    }
    if (pairs > kMostPairs || swept > kMostSweeps * (ndim + 1) * boxes.size())
      return wrong(tensor, "its {} pieces lie as no writer leaves them", boxes.size());
  }
  return {};
}

Status check_tensor(const Manifest& manifest, const TensorEntry& tensor) {
  const auto elements = checked_elements(tensor.shape);
  if (!elements || *elements > kMostElements)
    return wrong(tensor, "the shape {} is impossible", to_string(tensor.shape));
  std::int64_t held = 0;
  std::size_t checked = 0;
  while (checked < tensor.pieces.size() && held <= *elements) {  // so that the sum cannot overflow; then two overlap
    const Piece& piece = tensor.pieces[checked++];
    TRY(check_piece(manifest, tensor, piece));
    held += piece.box.num_elements();
  }
  TRY(check_no_overlap(tensor, std::span(tensor.pieces).first(checked)));
  if (held != *elements) return wrong(tensor, "the pieces cover {} of {} elements", held, *elements);
  return {};
}

// Checks that the frames are as many as the raw bytes need, and together as long as the file.
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
