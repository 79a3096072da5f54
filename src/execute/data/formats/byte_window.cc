#include "execute/data/formats/byte_window.h"

#include <algorithm>
#include <cstring>

#include "ground/store/git_lfs.h"

namespace systole {
namespace {

constexpr std::int64_t kMostAhead = 256 << 10, kLeastAhead = 4 << 10;
constexpr std::int64_t kNeverABomb = 64 << 20;

}  // namespace

Result<std::unique_ptr<ByteWindow>> ByteWindow::open(const RecordFile& file, Compression compression) {
  std::unique_ptr<ByteWindow> window(new ByteWindow);
  window->shown_ = file.shown;
  if (compression_of(file.path, compression) == Compression::none) {
    Result<std::unique_ptr<ReadableFile>> opened = open_to_read(*file.store, file.path);
    if (!opened.ok()) return std::move(opened).error().at({file.shown});
    window->file_ = *std::move(opened);
    window->size_ = window->file_->size().count();
    if (window->size_ == 0) return error(ErrorKind::invalid, "the file is empty").at({file.shown});
    if (Status itself = refuse_lfs_pointer(*file.store, file.path); !itself.ok())
      return std::move(itself).error().at({file.shown});
  } else {
    window->stream_ = TRY(open_bytes(*file.store, file.path, file.shown, compression));
    window->size_ = TRY(file.store->size(file.path)).count();
  }
  return window;
}

// At most into.size() bytes behind the window; 0 at the end.
Result<std::int64_t> ByteWindow::read_more(std::span<std::byte> into) {
  const std::int64_t from = base_ + filled_;
  if (stream_ == nullptr) {
    const auto count = std::clamp<std::int64_t>(size_ - from, 0, static_cast<std::int64_t>(into.size()));
    if (count == 0) return std::int64_t{0};
    if (Status read = file_->read(from, into.first(static_cast<std::size_t>(count))); !read.ok())
      return std::move(read).error().at({shown_});
    return count;
  }
  const auto count = static_cast<std::int64_t>(TRY(stream_->read(into)));
  if (from + count > kNeverABomb && (from + count) / kMostTimesLarger > size_) {
    return error(ErrorKind::corrupt,
                 "its {} bytes decompress to more than {} times as many, as a decompression bomb would",
                 with_commas(size_), kMostTimesLarger)
        .at({shown_})
        .hinted("if it is meant so, decompress it first (zstd -d, gunzip) and name the plain file");
  }
  return count;
}

// Drops what is before `begin`; all, if it is behind what there is.
void ByteWindow::drop_before(std::int64_t begin) {
  const std::int64_t dropped = std::min(begin - base_, filled_);
  if (dropped <= 0) return;
  filled_ -= dropped;
  base_ += dropped;
  if (filled_ > 0) std::memmove(buffer_.data(), buffer_.data() + dropped, static_cast<std::size_t>(filled_));
}

Status ByteWindow::move(std::int64_t begin, std::int64_t end) {
  CHECK(stream_ == nullptr || begin >= base_, "a compressed file is read forwards");
  if (stream_ == nullptr && (begin < base_ || begin > base_ + filled_)) {
    base_ = begin;  // a jump: little is read ahead until more is asked for
    filled_ = 0;
    ahead_ = kLeastAhead;
    at_end_ = false;
  }
  drop_before(begin);
  while (!at_end_ && base_ + filled_ < end) {
    // Memory grows with the bytes that arrive, not with a size that the file claims.
    const std::int64_t wanted = std::min(std::max(filled_ + ahead_, end - base_), std::max(kMostAhead, 2 * filled_));
    if (static_cast<std::int64_t>(buffer_.size()) < wanted) buffer_.resize(static_cast<std::size_t>(wanted));
    const auto room = std::min<std::int64_t>(std::max(ahead_, end - base_ - filled_),
                                             static_cast<std::int64_t>(buffer_.size()) - filled_);
    const std::int64_t count =
        TRY(read_more(std::as_writable_bytes(std::span(buffer_.data() + filled_, static_cast<std::size_t>(room)))));
    at_end_ = count == 0;
    filled_ += count;
    drop_before(begin);  // of a compressed file, what is skipped
  }
  ahead_ = std::min(std::max(2 * ahead_, kLeastAhead), kMostAhead);
  if (base_ < begin) base_ = begin;  // the file ends before
  return Done{};
}

}  // namespace systole
