#include "execute/checkpoint/read_piece.h"

#include <algorithm>
#include <cstring>

#include "execute/checkpoint/keys.h"

namespace systole::checkpoint {
namespace {

constexpr std::int64_t kReadGap = 4096, kStagedBytes = 4 << 20;  // bytes; the latter is the size of the buffer

}  // namespace

ChunkHasher::ChunkHasher(const Folder& folder, const ChunkFile& chunk) : folder_(folder), chunk_(chunk) {
  if (folder.keys && folder.keys->trusted) sha256_.emplace();
}

void ChunkHasher::add(std::span<const std::byte> bytes) {
  hasher_.add(bytes);
  if (sha256_) sha256_->add(bytes);
}

Status ChunkHasher::check() {
  const std::string path = folder_.chunk(chunk_.hash), hash = to_hex(hasher_.digest());
  if (hash != chunk_.hash) return error(ErrorKind::corrupt, "the bytes of the chunk hash to {}", hash).at({path});
  if (!sha256_) return {};
  const std::string sha = to_hex_text(sha256_->digest());
  if (sha == chunk_.sha256) return {};
  return error(ErrorKind::corrupt, "the chunk was altered: its SHA-256 is {} and the signed manifest says '{}'", sha,
               chunk_.sha256)
      .at({path});
}

ChunkSource::ChunkSource(const Folder& folder, const ChunkFile& chunk, ChunkHasher* tap)
    : folder_(folder), chunk_(chunk), tap_(tap), path_(folder.chunk(chunk.hash)) {}

Status ChunkSource::read(std::int64_t offset, std::span<std::byte> into) {
  if (into.empty()) return {};
  if (!chunk_.coding) return read_stored(offset, into);
  while (!into.empty()) {
    const auto number = static_cast<std::size_t>(offset / kFrameBytes);
    TRY(load_frame(number));
    const auto from = raw_.subspan(static_cast<std::size_t>(offset % kFrameBytes));
    const std::size_t count = std::min(from.size(), into.size());
    std::memcpy(into.data(), from.data(), count);
    into = into.subspan(count);
    offset += static_cast<std::int64_t>(count);
  }
  return {};
}

Status ChunkSource::read_stored(std::int64_t offset, std::span<std::byte> into) {
  TRY(folder_.store->get(path_, offset, into));
  read_ += Bytes(into.size());
  if (tap_) tap_->add(into);
  return {};
}

Status ChunkSource::load_frame(std::size_t number) {
  if (frame_ == number) return {};
  const Coding& coding = *chunk_.coding;
  CHECK(number < coding.frames.size(), "frame {} of {}", number, coding.frames.size());
  if (!decoder_) {
    const bool has_key = folder_.keys && folder_.keys->encryption;
    if (!coding.salt.empty() && !has_key) {
      return error(ErrorKind::invalid, "this checkpoint is encrypted, and no key was given")
          .at({path_})
          .hinted("checkpoint.encryption_key: env:NAME or file:PATH, or --encryption-key");
    }
    decoder_.emplace(coding, has_key ? folder_.keys->encryption : std::nullopt);
  }
  std::int64_t begin = 0;
  for (std::size_t before = 0; before < number; ++before) begin += coding.frames[before];
  stored_.resize(static_cast<std::size_t>(coding.frames[number]));
  frame_.reset();
  TRY(read_stored(begin, stored_));
  auto raw = decoder_->frame(number, stored_);
  if (!raw) return std::move(raw).error().at({path_});
  raw_ = *raw;
  frame_ = number;
  return {};
}

namespace {

// Runs that are read in one call: from the beginning of the first to the end of the last.
class RunReader {
 public:
  RunReader(ChunkSource& source, const Piece& piece, std::int64_t element, std::span<std::byte> into)
      : source_(source), offset_(piece.offset), element_(element), into_(into) {}

  Status add(const Run& run) {
    const Span next{run.from * element_, run.to * element_, run.count * element_};
    const bool near = !pending_.empty() && next.from - end() < kReadGap &&
                      next.from + next.bytes - pending_.front().from <= kStagedBytes;
    if (!near) TRY(flush());
    pending_.push_back(next);
    return {};
  }

  Status flush() {
    if (pending_.empty()) return {};
    const Status read = pending_.size() == 1 ? read_one(pending_.front()) : read_staged();
    pending_.clear();
    return read;
  }

 private:
  struct Span {
    std::int64_t from, to, bytes;  // offsets in the piece and in the target, and size
  };
  std::int64_t end() const { return pending_.back().from + pending_.back().bytes; }
  std::span<std::byte> target(const Span& span) const {
    return into_.subspan(static_cast<std::size_t>(span.to), static_cast<std::size_t>(span.bytes));
  }

  Status read_one(const Span& span) { return source_.read(offset_ + span.from, target(span)); }

  Status read_staged() {
    const std::int64_t begin = pending_.front().from;
    staged_.resize(static_cast<std::size_t>(end() - begin));
    TRY(source_.read(offset_ + begin, staged_));
    for (const Span& span : pending_) {
      const std::span<std::byte> to = target(span);
      std::memcpy(to.data(), staged_.data() + (span.from - begin), to.size());
    }
    return {};
  }

  ChunkSource& source_;
  std::int64_t offset_, element_;
  std::span<std::byte> into_;
  std::vector<Span> pending_;
  std::vector<std::byte> staged_;
};

}  // namespace

Status read_piece(ChunkSource& source, const Piece& piece, std::int64_t element_bytes, const Box& part,
                  const Box& target, std::span<std::byte> into) {
  RunReader reader(source, piece, element_bytes, into);
  TRY(for_each_run(part, piece.box, target, [&](const Run& run) { return reader.add(run); }));
  return reader.flush();
}

Status check_target(const TensorEntry& tensor, const Box& box, const Box& held, std::span<const std::byte> into) {
  auto inside = check_inside(box, tensor.shape);
  if (!inside) return error(ErrorKind::invalid, "tensor '{}': {}", tensor.name, inside.error().message);
  bool around = held.ndim() == box.ndim() && held.end.size() == box.ndim();
  for (std::size_t d = 0; around && d < box.ndim(); ++d)
    around =
        held.start[d] <= held.end[d] && (box.empty() || (held.start[d] <= box.start[d] && box.end[d] <= held.end[d]));
  if (!around) {
    return error(ErrorKind::invalid, "tensor '{}': box {} does not lie in the buffer's, {}", tensor.name,
                 to_string(box), to_string(held));
  }
  const std::int64_t bytes = held.num_elements() * size_of(tensor.dtype);
  if (bytes == static_cast<std::int64_t>(into.size())) return {};
  return error(ErrorKind::invalid, "tensor '{}': box {} takes {} bytes, the target has {}", tensor.name,
               to_string(held), bytes, into.size());
}

}  // namespace systole::checkpoint
