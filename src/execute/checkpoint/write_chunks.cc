// Phase write of a save: chunk files, each synced before it takes its name.

#include <map>
#include <mutex>

#include "execute/checkpoint/pack.h"
#include "execute/checkpoint/parallel.h"
#include "execute/checkpoint/restore.h"
#include "execute/checkpoint/save.h"
#include "ground/base/hash.h"

namespace systole::checkpoint {

namespace {

std::string hash_of(const PackedChunk& chunk, std::span<const TensorPart> parts) {
  Hasher hasher;
  for_each_span(chunk, parts, [&](std::span<const std::byte> bytes) -> Status {
    hasher.add(bytes);
    return {};
  }).value();
  return to_hex(hasher.digest());
}

// Writes the chunks of one writer. Thread-safe.
class ChunkWriter {
 public:
  ChunkWriter(const Folder& folder, std::span<const TensorPart> parts, const SaveOptions& options,
              const std::string& writer)
      : folder_(folder), parts_(parts), options_(options), writer_(writer) {}

  // `number`: of the chunk among this writer's.
  Result<ChunkFile> write(const PackedChunk& chunk, std::size_t number) {
    const ChunkFile file{hash_of(chunk, parts_), Bytes(chunk.bytes)};
    const std::string path = folder_.chunk(file.hash);
    const bool there = TRY(folder_.store->exists(path));
    if (there && verify_chunk(folder_, file).ok()) {
      count(stats_.chunks_reused, stats_.reused, file);
      return file;
    }
    // A name that nobody else writes to: another thread or rank, or one of a save before that woke up late, may hold
    // the same bytes.
    const std::string temporary = fmt::format("{}.{}-{}{}", path, writer_, number, kTemporary);
    leaves(temporary);
    TRY(write_file(temporary, chunk));
    if (!there) leaves(path);  // when it was there and damaged, an older checkpoint names it
    TRY(folder_.store->rename(temporary, path));
    count(stats_.chunks_written, stats_.written, file);
    return file;
  }

  // After a failure: what no manifest names goes away, so that a full disk is not left fuller. What the store does
  // not let us remove now is swept later. A chunk that has its name may be another rank's by now: rank 0 sweeps it.
  void abandon() {
    for (const std::string& path : leftovers_) {
      if (options_.group.alone() || path.ends_with(kTemporary)) static_cast<void>(folder_.store->remove(path));
    }
  }
  const WriteStats& stats() const { return stats_; }

 private:
  // Always a fresh file: a leftover of an earlier attempt may have failed to sync, and what such a file still holds in
  // memory can be gone from the disk for good without a later sync saying so.
  Status write_file(const std::string& path, const PackedChunk& chunk) {
    TRY(folder_.store->remove(path));
    auto file = TRY(folder_.store->create(path));
    TRY(for_each_span(chunk, parts_, [&](std::span<const std::byte> bytes) { return file->append(bytes); }));
    TRY(file->sync());
    return file->close();
  }

  void leaves(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    leftovers_.push_back(path);
  }
  void count(std::int64_t& chunks, Bytes& bytes, const ChunkFile& file) {
    const std::scoped_lock lock(mutex_);
    ++chunks;
    bytes += file.bytes;
  }

  const Folder& folder_;
  const std::span<const TensorPart> parts_;
  const SaveOptions& options_;
  const std::string& writer_;
  std::mutex mutex_;
  std::vector<std::string> leftovers_;
  WriteStats stats_;
};

Status check_held(const TensorPart& part) {
  if (!part.held) return {};
  const Box& held = *part.held;
  bool around = held.ndim() == part.box.ndim() && held.end.size() == held.start.size();
  for (std::size_t d = 0; around && d < held.ndim(); ++d) {
    around = part.box.empty() ? held.start[d] <= held.end[d]
                              : held.start[d] <= part.box.start[d] && held.end[d] >= part.box.end[d];
  }
  if (around) return {};
  return error(ErrorKind::invalid, "tensor '{}': box {} does not lie in what is held, {}", part.name,
               to_string(part.box), to_string(held));
}

Status check_part(const TensorPart& part) {
  const auto elements = checked_elements(part.shape);
  if (!elements) return error(ErrorKind::invalid, "tensor '{}' has the shape {}", part.name, to_string(part.shape));
  auto inside = check_inside(part.box, part.shape);
  if (!inside) return error(ErrorKind::invalid, "tensor '{}': {}", part.name, inside.error().message);
  TRY(check_held(part));
  const Box& held = part.held ? *part.held : part.box;
  const std::int64_t bytes = held.num_elements() * size_of(part.dtype);
  if (bytes != static_cast<std::int64_t>(part.bytes.size())) {
    return error(ErrorKind::invalid, "tensor '{}': box {} of {} takes {} bytes and {} were given", part.name,
                 to_string(held), name_of(part.dtype), bytes, part.bytes.size());
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
  const std::vector<PackedChunk> packed = pack(parts, options.chunk_bytes);
  fragment.chunks.resize(packed.size());
  TRY(for_each_in_parallel(packed.size(), options.threads, [&](std::size_t c) -> Status {
    fragment.chunks[c] = TRY(writer.write(packed[c], c));
    return {};
  }));
  for (std::size_t c = 0; c < packed.size(); ++c) {
    for (const PackedPiece& piece : packed[c].pieces) {
      fragment.tensors[entries[piece.part]].pieces.push_back(
          {piece.box, static_cast<std::int64_t>(c), piece.offset, Encoding::raw});
    }
  }
  return {};
}

}  // namespace

Result<Fragment> write_chunks(const Folder& folder, std::span<const TensorPart> parts, const SaveOptions& options,
                              const std::string& writer) {
  Fragment fragment;
  const std::vector<std::size_t> entries = TRY(make_entries(parts, fragment));
  TRY(prepare(folder));
  ChunkWriter chunks(folder, parts, options, writer);
  auto written = write_all(chunks, parts, entries, options, fragment);
  if (!written) {
    chunks.abandon();
    return std::move(written).error();
  }
  fragment.stats = chunks.stats();
  return fragment;
}

Bytes save_bytes(std::span<const TensorPart> parts, const SaveOptions& options) {
  Bytes sum;
  for (const PackedChunk& chunk : pack(parts, options.chunk_bytes)) sum += Bytes(chunk.bytes);
  return sum;
}

}  // namespace systole::checkpoint
