#include <zlib.h>

#include "execute/data/formats/example.h"
#include "execute/data/formats/partial_file.h"
#include "execute/data/formats/tfrecord.h"
#include "execute/data/little_endian.h"

namespace systole {
namespace {

// The bytes of a file, compressed by zlib on their way.
class Deflated {
 public:
  explicit Deflated(bool gzip) : output_(std::size_t{256} << 10) {
    constexpr int kMemory = 8;  // zlib's own default
    const int window = 15 + (gzip ? 16 : 0);
    CHECK(deflateInit2(&zlib_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, kMemory, Z_DEFAULT_STRATEGY) == Z_OK,
          "zlib cannot start");
  }
  ~Deflated() { deflateEnd(&zlib_); }
  Deflated(const Deflated&) = delete;
  Deflated& operator=(const Deflated&) = delete;

  Status put(std::span<const std::byte> bytes, bool last, PartialFile& file) {
    constexpr std::size_t kMost = std::size_t{1} << 30;  // zlib counts in 32 bits
    for (; bytes.size() > kMost; bytes = bytes.subspan(kMost)) TRY(put_part(bytes.first(kMost), Z_NO_FLUSH, file));
    return put_part(bytes, last ? Z_FINISH : Z_NO_FLUSH, file);
  }

 private:
  Status put_part(std::span<const std::byte> bytes, int flush, PartialFile& file) {
    zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
    zlib_.avail_in = static_cast<uInt>(bytes.size());
    do {
      zlib_.next_out = reinterpret_cast<Bytef*>(output_.data());
      zlib_.avail_out = static_cast<uInt>(output_.size());
      CHECK(deflate(&zlib_, flush) != Z_STREAM_ERROR, "zlib is in no state to go on");
      TRY(file.append(std::span(output_).first(output_.size() - zlib_.avail_out)));
    } while (zlib_.avail_out == 0);
    return Done{};
  }

  z_stream zlib_{};
  std::vector<std::byte> output_;
};

class TfrecordWriter : public RecordWriter {
 public:
  TfrecordWriter(std::unique_ptr<PartialFile> file, TfrecordCompression compression) : file_(std::move(file)) {
    if (compression != TfrecordCompression::none)
      deflated_ = std::make_unique<Deflated>(compression == TfrecordCompression::gzip);
  }

  Status add(std::string_view record) override {
    std::vector<std::byte>& frame = frame_;
    frame.clear();
    systole::put(frame, static_cast<std::uint64_t>(record.size()));
    systole::put(frame, masked_crc32c(std::span(frame).first(8)));
    TRY(put(frame));
    const auto data = std::as_bytes(std::span(record.data(), record.size()));
    TRY(put(data));
    frame.clear();
    systole::put(frame, masked_crc32c(data));
    return put(frame);
  }

  Status add_fields(std::span<const RecordField> fields) override { return add(make_example(fields)); }

  Status finish() override {
    if (deflated_ != nullptr) TRY(deflated_->put({}, true, *file_));
    return file_->finish();
  }

 private:
  Status put(std::span<const std::byte> bytes) {
    if (bytes.empty()) return Done{};
    return deflated_ != nullptr ? deflated_->put(bytes, false, *file_) : file_->append(bytes);
  }

  std::unique_ptr<PartialFile> file_;
  std::unique_ptr<Deflated> deflated_;
  std::vector<std::byte> frame_;
};

}  // namespace

Result<std::unique_ptr<RecordWriter>> create_tfrecord(Store& store, const std::string& path,
                                                      TfrecordCompression compression) {
  std::unique_ptr<PartialFile> file = TRY(PartialFile::create(store, path));
  return std::unique_ptr<RecordWriter>(std::make_unique<TfrecordWriter>(std::move(file), compression));
}

}  // namespace systole
