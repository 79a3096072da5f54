#pragma once
// A moving window on a file's bytes, for formats that are read in place: the bytes of a record lie side by side in memory,
// and are valid until the window is moved. A plain file may be read at any place; a compressed one only forwards.
//
// Against decompression bombs, a compressed file may not become more than 200 times as large (nor is anything below 64
// MiB refused): text reaches 50, and memory is bounded by what the format asks for, never by what the file says.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "execute/data/byte_stream.h"
#include "execute/data/formats/record.h"
#include "ground/store/readable.h"

namespace systole {

class ByteWindow {
 public:
  static constexpr std::int64_t kMostTimesLarger = 200;

  // Errors: not_found, io; invalid if the file is empty.
  static Result<std::unique_ptr<ByteWindow>> open(const RecordFile& file,
                                                  Compression compression = Compression::by_name);

  // Bytes [begin, end), or those that there are up to the end of the file. Views of earlier calls are no longer valid.
  // REQUIRES: begin <= end; of a compressed file, `begin` is not before that of an earlier call.
  // Errors: io; corrupt (compressed data damaged, truncated, or a bomb).
  Result<std::string_view> bytes(std::int64_t begin, std::int64_t end) {
    if (begin < base_ || end > base_ + filled_) [[unlikely]]
      TRY(move(begin, end));
    return at(begin, std::min(end, base_ + filled_));
  }
  // Bytes that the last call of bytes() covered.
  std::string_view at(std::int64_t begin, std::int64_t end) const {
    return {buffer_.data() + (begin - base_), static_cast<std::size_t>(end > begin ? end - begin : 0)};
  }
  bool seekable() const { return file_ != nullptr; }
  std::int64_t file_size() const { return size_; }  // as stored

 private:
  ByteWindow() = default;
  Status move(std::int64_t begin, std::int64_t end);
  void drop_before(std::int64_t begin);
  Result<std::int64_t> read_more(std::span<std::byte> into);

  std::unique_ptr<ReadableFile> file_;  // or
  std::unique_ptr<ByteStream> stream_;
  std::string shown_;
  std::int64_t size_ = 0;
  std::vector<char> buffer_;
  std::int64_t base_ = 0, filled_ = 0;  // the first byte in buffer_, and how many
  std::int64_t ahead_ = 0;              // read beyond what is asked for
  bool at_end_ = false;
};

}  // namespace systole
