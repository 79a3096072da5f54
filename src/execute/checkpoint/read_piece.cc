#include "execute/checkpoint/read_piece.h"

#include <cstring>
#include <vector>

namespace systole::checkpoint {

namespace {

// Runs that are read at once: from the first one's beginning to the last one's end.
class RunReader {
 public:
  RunReader(const ChunkSource& source, const Piece& piece, std::int64_t element, std::span<std::byte> into)
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
    std::int64_t from, to, bytes;  // in the piece, in the target, how many
  };
  std::int64_t end() const { return pending_.back().from + pending_.back().bytes; }
  std::span<std::byte> target(const Span& span) const {
    return into_.subspan(static_cast<std::size_t>(span.to), static_cast<std::size_t>(span.bytes));
  }

  Status read_one(const Span& span) const { return source_.read(offset_ + span.from, target(span)); }

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

  const ChunkSource& source_;
  std::int64_t offset_, element_;
  std::span<std::byte> into_;
  std::vector<Span> pending_;
  std::vector<std::byte> staged_;
};

}  // namespace

Status read_piece(const ChunkSource& source, const Piece& piece, std::int64_t element_bytes, const Box& part,
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
