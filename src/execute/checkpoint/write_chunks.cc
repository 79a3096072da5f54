// Phase write of a save: puts the chunks, each atomically.

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <random>

#include "execute/checkpoint/coding.h"
#include "execute/checkpoint/keys.h"
#include "execute/checkpoint/pack.h"
#include "execute/checkpoint/restore.h"
#include "execute/checkpoint/save.h"
#include "ground/base/hash.h"
#include "ground/base/parallel.h"
#include "ground/store/sha256.h"

namespace systole::checkpoint {

namespace {

using Take = std::function<Status(std::span<const std::byte>)>;

// Hashes of a chunk file: its name, and SHA-256 for a signed manifest.
class Naming {
 public:
  explicit Naming(const Folder& folder) {
    if (folder.keys && folder.keys->signing) sha256_.emplace();
  }
  void add(std::span<const std::byte> bytes) {
    hasher_.add(bytes);
    if (sha256_) sha256_->add(bytes);
  }
  ChunkFile file(Bytes bytes) {
    return {to_hex(hasher_.digest()), bytes, std::nullopt, sha256_ ? to_hex_text(sha256_->digest()) : ""};
  }

 private:
  Hasher hasher_;
  std::optional<Sha256> sha256_;
};

// The name under which a chunk begins before its bytes are known. Looks like a hash, so that a sweep removes what a
// dead writer has left there; no other writer has it, also none that was forked.
std::string unknown_hash() {
  std::random_device random;
  const auto half = [&] { return std::uint64_t{random()} << 32 | random(); };
  return to_hex(Hash128{half(), half()});
}

// Passes the raw bytes of a chunk to `take` frame by frame.
Status for_each_frame(const PackedChunk& chunk, std::span<const TensorPart> parts, const Take& take) {
  std::vector<std::byte> frame;
  TRY(for_each_span(chunk, parts, [&](std::span<const std::byte> bytes) -> Status {
    while (!bytes.empty()) {
      const std::size_t at = frame.size(), count = std::min(bytes.size(), static_cast<std::size_t>(kFrameBytes) - at);
      frame.resize(at + count);
      std::memcpy(frame.data() + at, bytes.data(), count);
      bytes = bytes.subspan(count);
      if (frame.size() < static_cast<std::size_t>(kFrameBytes)) continue;
      TRY(take(frame));
      frame.clear();
    }
    return {};
  }));
  return frame.empty() ? Status() : take(frame);
}

// Samples up to eight places of a chunk, evenly spaced, up to 32 KiB of contiguous bytes each.
std::vector<std::byte> sample_of(const PackedChunk& chunk, std::span<const TensorPart> parts) {
  constexpr std::int64_t kPlaces = 8;
  constexpr std::size_t kMost = 32 << 10;
  std::vector<std::byte> sample;
  std::int64_t at = 0, next = 0;
  for_each_span(chunk, parts, [&](std::span<const std::byte> bytes) -> Status {
    const std::int64_t end = at + static_cast<std::int64_t>(bytes.size());
    for (; next < end; next += std::max<std::int64_t>(1, chunk.bytes / kPlaces)) {
      const auto from = bytes.subspan(static_cast<std::size_t>(std::max<std::int64_t>(0, next - at)));
      const std::size_t count = std::min(from.size(), kMost), size = sample.size();
      sample.resize(size + count);
      std::memcpy(sample.data() + size, from.data(), count);
    }
    at = end;
    return {};
  }).value();
  return sample;
}

// Writes the chunks of one writer. Thread-safe.
class ChunkWriter {
 public:
  ChunkWriter(const Folder& folder, std::span<const TensorPart> parts, const SaveOptions& options)
      : folder_(folder), parts_(parts), options_(options) {}

  Result<ChunkFile> write(const PackedChunk& chunk) {
    const bool zstd = options_.compress && is_worth_compressing(sample_of(chunk, parts_));
    const bool encrypted = folder_.keys && folder_.keys->encryption;
    return zstd || encrypted ? write_coded(chunk, zstd) : write_raw(chunk);
  }

  // After a failure: removes what no manifest names, so that a full disk does not fill further. A later sweep removes
  // what the store refuses to remove now. With several writers a chunk may be another rank's too: rank 0 sweeps it.
  void abandon() {
    if (!options_.group.alone()) return;
    for (const std::string& path : leftovers_) static_cast<void>(folder_.store->remove(path));
  }
  const WriteStats& stats() const { return stats_; }

 private:
  Result<ChunkFile> write_raw(const PackedChunk& chunk) {
    Naming naming(folder_);
    TRY(for_each_span(chunk, parts_, [&](std::span<const std::byte> bytes) -> Status {
      naming.add(bytes);
      return {};
    }));
    ChunkFile file = naming.file(Bytes(chunk.bytes));
    const bool there = TRY(is_there(file));
    if (there && verify_chunk(folder_, file).ok()) return reused(std::move(file));
    const auto upload = TRY(folder_.store->start_upload(folder_.chunk(file.hash)));
    TRY(for_each_span(chunk, parts_, [&](std::span<const std::byte> bytes) { return upload->append(bytes); }));
    return completed(std::move(file), *upload, there);
  }

  // The name is known only after all bytes are written. A chunk that is only compressed may exist already.
  Result<ChunkFile> write_coded(const PackedChunk& chunk, bool zstd) {
    ChunkEncoder encoder(Bytes(chunk.bytes), zstd, folder_.keys ? folder_.keys->encryption : std::nullopt);
    Naming naming(folder_);
    Bytes bytes;
    const auto upload = TRY(folder_.store->start_upload(folder_.chunk(unknown_hash())));
    TRY(for_each_frame(chunk, parts_, [&](std::span<const std::byte> frame) {
      const std::span<const std::byte> stored = encoder.frame(frame);
      naming.add(stored);
      bytes += Bytes(stored.size());
      return upload->append(stored);
    }));
    ChunkFile file = naming.file(bytes);
    file.coding = encoder.coding();
    const bool there = TRY(is_there(file));
    if (!there || !verify_chunk(folder_, file).ok()) return completed(std::move(file), *upload, there);
    TRY(upload->abort());
    return reused(std::move(file));
  }

  Result<bool> is_there(const ChunkFile& file) { return has_object(*folder_.store, folder_.chunk(file.hash)); }

  ChunkFile reused(ChunkFile file) {
    count(stats_.chunks_reused, stats_.reused, file);
    return file;
  }

  // Its name becomes durable together with all others, before the commit.
  Result<ChunkFile> completed(ChunkFile file, Upload& upload, bool there) {
    const std::string path = folder_.chunk(file.hash);
    if (!there) leaves(path);  // if it existed but was damaged, an older checkpoint names it
    TRY(upload.complete_as(path, Precondition::always(), Durability::when_settled));
    count(stats_.chunks_written, stats_.written, file);
    return file;
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

// Makes the entries of a fragment and returns the entry of each part; the parts of one tensor share an entry.
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
    fragment.chunks[c] = TRY(writer.write(packed[c]));
    return {};
  }));
  for (std::size_t c = 0; c < packed.size(); ++c) {
    for (const PackedPiece& piece : packed[c].pieces) {
      fragment.tensors[entries[piece.part]].pieces.push_back(
          {piece.box, static_cast<std::int64_t>(c), piece.offset, fragment.chunks[c].encoding()});
    }
  }
  return {};
}

}  // namespace

Result<Fragment> write_chunks(const Folder& folder, std::span<const TensorPart> parts, const SaveOptions& options) {
  Fragment fragment;
  const std::vector<std::size_t> entries = TRY(make_entries(parts, fragment));
  ChunkWriter chunks(folder, parts, options);
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
