#include "execute/data/formats/tfrecord.h"

#include <algorithm>
#include <cstring>

#include "execute/data/byte_stream.h"
#include "execute/data/formats/example.h"
#include "execute/data/little_endian.h"
#include "ground/base/hash.h"

namespace systole {
namespace {

constexpr std::size_t kHeaderBytes = 12, kFooterBytes = 4;
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

bool length_is_sound(std::span<const std::byte> header) {
  return get<std::uint32_t>(header, 8) == masked_crc32c(header.first(8));
}

class TfrecordReader : public RecordReader {
 public:
  TfrecordReader(const RecordFile& file, std::unique_ptr<ByteStream> stream, const RecordLimits& limits)
      : shown_(file.shown),
        stream_(std::move(stream)),
        largest_(static_cast<std::uint64_t>(limits.largest_record.count())),
        buffer_(kBufferBytes) {}

  Result<bool> next(DataRecord& record) override {
    goes_on_ = false;
    const std::size_t there = TRY(gather(kHeaderBytes));
    if (there == 0) return false;
    if (there < kHeaderBytes) return cut_short(there, "its length");
    const std::span<const std::byte> header = pending().first(kHeaderBytes);
    if (!length_is_sound(header)) return damaged_length();
    const auto length = get<std::uint64_t>(header, 0);
    if (length > largest_) return pass_too_long(length);
    const std::size_t whole = kHeaderBytes + length + kFooterBytes;
    if (const std::size_t got = TRY(gather(whole)); got < whole) return cut_short(got, "its end");
    const std::span<const std::byte> data = pending().subspan(kHeaderBytes, length);
    const bool sound = get<std::uint32_t>(pending(), kHeaderBytes + length) == masked_crc32c(data);
    record = {.index = index_, .byte = at_, .bytes = {reinterpret_cast<const char*>(data.data()), length}};
    const RecordPlace place = this->place();
    begin_ += whole;
    at_ += static_cast<std::int64_t>(whole);
    ++index_;
    goes_on_ = true;
    if (sound) return true;
    return record_error(ErrorKind::corrupt, place, "the checksum of its data does not match",
                        "fetch the file again, or pass over such records with `on_bad_record: skip`");
  }

  bool goes_on() const override { return goes_on_; }

  Result<std::string_view> field(const DataRecord& record, std::string_view name) override {
    return field_of_example(record, name, shown_);
  }

 private:
  RecordPlace place() const { return {shown_, index_, at_}; }
  std::span<const std::byte> pending() const { return std::span(buffer_).subspan(begin_, end_ - begin_); }

  // Makes `wanted` bytes unread, or as many as are left of the file; how many there are. The buffer grows with the
  // bytes that the file has, so a length that lies costs no memory.
  Result<std::size_t> gather(std::size_t wanted) {
    while (end_ - begin_ < wanted && !at_end_) {
      if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
      if (end_ == buffer_.size()) buffer_.resize(std::min(2 * buffer_.size(), wanted + kBufferBytes));
      const std::size_t got = TRY(stream_->read(std::span(buffer_).subspan(end_)));
      at_end_ = got == 0;
      end_ += got;
    }
    return std::min(end_ - begin_, wanted);
  }

  Result<bool> pass_too_long(std::uint64_t length) {
    const RecordPlace place = this->place();
    std::uint64_t left = kHeaderBytes + length + kFooterBytes;
    if (left < length) return damaged_length();
    while (left > 0) {
      const std::size_t step = TRY(gather(static_cast<std::size_t>(std::min<std::uint64_t>(left, kBufferBytes))));
      if (step == 0) return cut_short(0, "its end");
      begin_ += step;
      at_ += static_cast<std::int64_t>(step);
      left -= step;
    }
    ++index_;
    goes_on_ = true;
    return record_error(ErrorKind::invalid, place,
                        fmt::format("it is {} bytes long, more than {}", with_commas(static_cast<std::int64_t>(length)),
                                    to_string(Bytes(static_cast<std::int64_t>(largest_)))),
                        "raise `largest_document`, or pass over such records with `on_bad_record: skip`");
  }

  Error damaged_length() const {
    return record_error(ErrorKind::corrupt, place(),
                        "the checksum of its length does not match, so where the next record begins is unknown",
                        index_ == 0 ? "is this a TFRecord? `format:` says what it is; else fetch it again"
                                    : "fetch the file again, or make it again from its source");
  }
  Error cut_short(std::size_t there, const char* what) const {
    return record_error(
        ErrorKind::corrupt, place(),
        fmt::format("the file stops {} bytes into the record, before {}", with_commas(std::int64_t(there)), what),
        "the file was not written or copied whole: fetch it again and compare its size");
  }

  std::string shown_;
  std::unique_ptr<ByteStream> stream_;
  std::uint64_t largest_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  bool at_end_ = false, goes_on_ = false;
  std::int64_t index_ = 0, at_ = 0;  // of the next record
};

// How the file is compressed, by its first bytes: a plain one begins with a length and its checksum.
Result<Compression> compression_found(const RecordFile& file) {
  const Bytes size = TRY(file.store->size(file.path));
  std::vector<std::byte> first(static_cast<std::size_t>(std::min<std::int64_t>(size.count(), kHeaderBytes)));
  if (!first.empty()) TRY(file.store->read(file.path, 0, first));
  if (first.size() == kHeaderBytes && length_is_sound(first)) return Compression::none;
  const auto is = [&](std::size_t at, unsigned value) { return first.size() > at && first[at] == std::byte(value); };
  if (is(0, 0x1f) && is(1, 0x8b)) return Compression::gzip;
  if (is(0, 0x28) && is(1, 0xb5) && is(2, 0x2f) && is(3, 0xfd)) return Compression::zstd;
  const bool zlib = is(0, 0x78) && first.size() > 1 &&
                    (0x7800 + std::to_integer<unsigned>(first[1])) % 31 == 0;  // RFC 1950, section 2.2
  return zlib ? Compression::gzip : Compression::none;
}

}  // namespace

std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}

Result<std::unique_ptr<RecordReader>> open_tfrecord(const RecordFile& file, const RecordLimits& limits) {
  Result<Compression> compression = compression_found(file);
  if (!compression.ok()) return std::move(compression).error().at({file.shown});
  std::unique_ptr<ByteStream> stream = TRY(open_bytes(*file.store, file.path, file.shown, *compression));
  return std::unique_ptr<RecordReader>(std::make_unique<TfrecordReader>(file, std::move(stream), limits));
}

}  // namespace systole
