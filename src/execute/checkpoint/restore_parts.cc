#include "execute/checkpoint/restore_parts.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "execute/checkpoint/keys.h"
#include "execute/checkpoint/read_piece.h"
#include "ground/base/parallel.h"

namespace systole::checkpoint {

namespace {

constexpr std::int64_t kStep = 512 << 10;  // block size: read, then hashed while still in the cache

struct PieceRead {
  const Piece* piece = nullptr;
  const RestoreDestination* destination = nullptr;
  std::int64_t element = 0;
  Box part;

  const Box& held() const { return destination->held ? *destination->held : destination->box; }
  std::int64_t bytes() const { return part.num_elements() * element; }
};

// The target bytes of the elements if those are contiguous in the target; else nothing.
std::optional<std::span<std::byte>> in_one_run(const PieceRead& wanted) {
  std::int64_t runs = 0;
  Run first;
  static_cast<void>(for_each_run(wanted.part, wanted.piece->box, wanted.held(), [&](const Run& run) -> Status {
    first = run;
    return ++runs == 1 ? Status() : Status(error(ErrorKind::interrupted, "more than one"));
  }));
  if (runs != 1) return std::nullopt;
  return wanted.destination->into.subspan(static_cast<std::size_t>(first.to * wanted.element),
                                          static_cast<std::size_t>(wanted.bytes()));
}

// One chunk, and the elements wanted from it.
class ChunkRestorer {
 public:
  ChunkRestorer(const Folder& folder, const ChunkFile& chunk, std::vector<PieceRead> wanted)
      : folder_(folder), chunk_(chunk), wanted_(std::move(wanted)) {
    std::sort(wanted_.begin(), wanted_.end(),
              [](const PieceRead& a, const PieceRead& b) { return a.piece->offset < b.piece->offset; });
  }

  // All pieces are wanted, each once.
  bool is_whole(std::int64_t pieces) const {
    if (static_cast<std::int64_t>(wanted_.size()) != pieces) return false;
    for (std::size_t w = 0; w < wanted_.size(); ++w) {
      if (wanted_[w].part != wanted_[w].piece->box) return false;
      if (w > 0 && wanted_[w].piece == wanted_[w - 1].piece) return false;
    }
    return true;
  }

  Status read_verified() {
    ChunkHasher hasher(folder_, chunk_);
    ChunkSource source(folder_, chunk_, &hasher);
    std::int64_t at = 0;
    std::vector<std::byte> gap, strided;
    const auto read = [&](std::span<std::byte> into) -> Status {
      for (std::size_t done = 0; done < into.size(); done += kStep) {
        const auto step = into.subspan(done, std::min<std::size_t>(kStep, into.size() - done));
        TRY(source.read(at, step));
        at += static_cast<std::int64_t>(step.size());
      }
      return {};
    };
    const auto skip_to = [&](std::int64_t offset) -> Status {
      gap.resize(static_cast<std::size_t>(offset - at));
      return read(gap);
    };
    for (const PieceRead& one : wanted_) {
      if (one.piece->offset < at) return error(ErrorKind::corrupt, "two pieces overlap").at({path()});
      TRY(skip_to(one.piece->offset));
      const auto straight = in_one_run(one);
      if (straight) {
        TRY(read(*straight));
        continue;
      }
      strided.resize(static_cast<std::size_t>(one.bytes()));
      TRY(read(strided));
      copy_part(one.part, one.element, one.piece->box, strided, one.held(), one.destination->into);
    }
    TRY(skip_to(chunk_.raw_bytes().count()));
    read_ = source.bytes_read();
    return hasher.check();
  }

  // If only signed checkpoints are trusted, and no encryption tag authenticates the frames that are read, the whole
  // chunk is read once for its SHA-256 first.
  Status read_needed() {
    const bool vouched = chunk_.coding && !chunk_.coding->salt.empty();
    if (folder_.keys && folder_.keys->trusted && !vouched) {
      TRY(verify_chunk(folder_, chunk_));
      read_ += chunk_.bytes;
    }
    ChunkSource source(folder_, chunk_);
    for (const PieceRead& one : wanted_)
      TRY(read_piece(source, *one.piece, one.element, one.part, one.held(), one.destination->into));
    read_ += source.bytes_read();
    return {};
  }

  Bytes read() const { return read_; }

 private:
  std::string path() const { return folder_.chunk(chunk_.hash); }

  const Folder& folder_;
  const ChunkFile& chunk_;
  std::vector<PieceRead> wanted_;
  Bytes read_;
};

using ReadsByChunk = std::map<std::int64_t, std::vector<PieceRead>>;

Result<ReadsByChunk> want(const Checkpoint& from, std::span<const RestoreDestination> destinations) {
  ReadsByChunk wanted;
  for (const RestoreDestination& destination : destinations) {
    const TensorEntry* tensor = TRY(from.find(destination.name, destination.dtype, destination.shape));
    TRY(check_target(*tensor, destination.box, destination.held.value_or(destination.box), destination.into));
    for (const Piece& piece : tensor->pieces) {
      if (auto part = intersect(piece.box, destination.box))
        wanted[piece.chunk].push_back({&piece, &destination, size_of(tensor->dtype), *std::move(part)});
    }
  }
  return wanted;
}

std::vector<std::int64_t> pieces_of_chunks(const Manifest& manifest) {
  std::vector<std::int64_t> pieces(manifest.chunks.size());
  for (const TensorEntry& tensor : manifest.tensors) {
    for (const Piece& piece : tensor.pieces) ++pieces[static_cast<std::size_t>(piece.chunk)];
  }
  return pieces;
}

}  // namespace

Result<RestoreReport> restore_parts(const Checkpoint& from, std::span<const RestoreDestination> destinations,
                                    int threads) {
  ReadsByChunk wanted = TRY(want(from, destinations));
  const std::vector<std::int64_t> pieces = pieces_of_chunks(from.manifest());
  std::vector<std::int64_t> chunks;
  for (const auto& [chunk, list] : wanted) chunks.push_back(chunk);
  RestoreReport report;
  std::mutex mutex;
  TRY(for_each_in_parallel(chunks.size(), threads, [&](std::size_t c) -> Status {
    const auto index = static_cast<std::size_t>(chunks[c]);
    ChunkRestorer restorer(from.folder(), from.manifest().chunks[index], std::move(wanted[chunks[c]]));
    const bool whole = restorer.is_whole(pieces[index]);
    TRY(whole ? restorer.read_verified() : restorer.read_needed());
    const std::scoped_lock lock(mutex);
    report.read += restorer.read();
    if (!whole) ++report.chunks_partly;
    return {};
  }));
  return report;
}

Result<Restored> restore_newest(const Folder& folder, const std::function<Status(const Checkpoint&)>& take) {
  return newest_of(folder, [&](std::int64_t step) -> Result<Checkpoint> {
    Checkpoint opened = TRY(open_step(folder, step, Verify::lengths));
    auto taken = take(opened);
    if (!taken) return std::move(taken).error();
    return opened;
  });
}

}  // namespace systole::checkpoint
