// Phase write of a save: chunk files, each synced before it takes its name.

#include <algorithm>
#include <array>
#include <map>

#include "execute/checkpoint/pack.h"
#include "execute/checkpoint/restore.h"
#include "execute/checkpoint/save.h"
#include "ground/base/hash.h"

namespace systole::checkpoint {

namespace {

constexpr std::array<std::byte, kPieceAlignment> kZeros{};

// Hands the bytes of a chunk file, gaps included, to `take` in order.
template <typename Take>
Status for_each_span(const PackedChunk& chunk, Take take) {
  std::int64_t at = 0;
  for (const PackedPiece& piece : chunk.pieces) {
    if (piece.offset > at)
      TRY(take(std::span<const std::byte>(kZeros).first(static_cast<std::size_t>(piece.offset - at))));
    TRY(take(piece.bytes));
    at = piece.offset + static_cast<std::int64_t>(piece.bytes.size());
  }
  return {};
}

std::string hash_of(const PackedChunk& chunk) {
  Hasher hasher;
  for_each_span(chunk, [&](std::span<const std::byte> bytes) -> Status {
    hasher.add(bytes);
    return {};
  }).value();
  return to_hex(hasher.digest());
}

// Always a fresh file: a leftover of an earlier attempt may have failed to sync, and what such a file still holds in
// memory can be gone from the disk for good without a later sync saying so.
Status write_file(Store& store, const std::string& path, const PackedChunk& chunk) {
  TRY(store.remove(path));
  auto file = TRY(store.create(path));
  TRY(for_each_span(chunk, [&](std::span<const std::byte> bytes) { return file->append(bytes); }));
  TRY(file->sync());
  return file->close();
}

class ChunkWriter {
 public:
  ChunkWriter(const Folder& folder, const SaveOptions& options) : folder_(folder), options_(options) {}

  Result<ChunkFile> write(const PackedChunk& chunk) {
    const ChunkFile file{hash_of(chunk), Bytes(chunk.bytes)};
    const std::string path = folder_.chunk(file.hash);
    const bool there = TRY(folder_.store->exists(path));
    if (there && verify_chunk(folder_, file).ok()) {
      ++stats_.chunks_reused;
      stats_.reused += file.bytes;
      return file;
    }
    const std::string temporary = fmt::format("{}.{}{}", path, options_.writer, kTemporary);
    leftovers_.push_back(temporary);
    TRY(write_file(*folder_.store, temporary, chunk));
    if (!there) leftovers_.push_back(path);  // when it was there and damaged, an older checkpoint names it
    TRY(folder_.store->rename(temporary, path));
    leftovers_.erase(std::find(leftovers_.begin(), leftovers_.end(), temporary));
    ++stats_.chunks_written;
    stats_.written += file.bytes;
    return file;
  }

  // After a failure: what no manifest names goes away, so that a full disk is not left fuller. What the store does
  // not let us remove now is swept later.
  void abandon() {
    for (const std::string& path : leftovers_) static_cast<void>(folder_.store->remove(path));
  }
  const WriteStats& stats() const { return stats_; }

 private:
  const Folder& folder_;
  const SaveOptions& options_;
  std::vector<std::string> leftovers_;
  WriteStats stats_;
};

Status check_part(const TensorPart& part) {
  const auto elements = checked_elements(part.shape);
  if (!elements) return error(ErrorKind::invalid, "tensor '{}' has the shape {}", part.name, to_string(part.shape));
  auto inside = check_inside(part.box, part.shape);
  if (!inside) return error(ErrorKind::invalid, "tensor '{}': {}", part.name, inside.error().message);
  const std::int64_t bytes = part.box.num_elements() * size_of(part.dtype);
  if (bytes != static_cast<std::int64_t>(part.bytes.size())) {
    return error(ErrorKind::invalid, "tensor '{}': box {} of {} takes {} bytes and {} were given", part.name,
                 to_string(part.box), name_of(part.dtype), bytes, part.bytes.size());
  }
  return {};
}

// The entries of a fragment, and which one each part belongs to; several parts of one tensor share one.
Result<std::vector<std::size_t>> make_entries(std::span<const TensorPart> parts, Fragment& fragment) {
  std::vector<std::size_t> entries;
  std::map<std::string_view, std::size_t> seen;
  for (const TensorPart& part : parts) {
    TRY(check_part(part));
    const auto [slot, fresh] = seen.emplace(part.name, fragment.tensors.size());
    if (fresh) fragment.tensors.push_back({part.name, part.role, part.dtype, part.shape, {}});
    const TensorEntry& entry = fragment.tensors[slot->second];
    if (entry.dtype != part.dtype || entry.shape != part.shape || entry.role != part.role) {
      return error(ErrorKind::invalid, "tensor '{}' is given twice with other types: {}{} and {}{}", part.name,
                   name_of(entry.dtype), to_string(entry.shape), name_of(part.dtype), to_string(part.shape));
    }
    entries.push_back(slot->second);
  }
  return entries;
}

Status write_all(ChunkWriter& writer, std::span<const TensorPart> parts, std::span<const std::size_t> entries,
                 const SaveOptions& options, Fragment& fragment) {
  for (const PackedChunk& chunk : pack(parts, options.chunk_bytes)) {
    const auto index = static_cast<std::int64_t>(fragment.chunks.size());
    fragment.chunks.push_back(TRY(writer.write(chunk)));
    for (const PackedPiece& piece : chunk.pieces) {
      fragment.tensors[entries[piece.part]].pieces.push_back({piece.box, index, piece.offset, Encoding::raw});
    }
  }
  return {};
}

}  // namespace

Result<Fragment> write_chunks(const Folder& folder, std::span<const TensorPart> parts, const SaveOptions& options) {
  Fragment fragment;
  const std::vector<std::size_t> entries = TRY(make_entries(parts, fragment));
  TRY(prepare(folder));
  ChunkWriter writer(folder, options);
  auto written = write_all(writer, parts, entries, options, fragment);
  if (!written) {
    writer.abandon();
    return std::move(written).error();
  }
  fragment.stats = writer.stats();
  return fragment;
}

Bytes save_bytes(std::span<const TensorPart> parts, const SaveOptions& options) {
  Bytes sum;
  for (const PackedChunk& chunk : pack(parts, options.chunk_bytes)) sum += Bytes(chunk.bytes);
  return sum;
}

}  // namespace systole::checkpoint
