#include "execute/data/formats/compressing_file.h"
#include "execute/data/formats/example.h"
#include "execute/data/formats/tfrecord.h"
#include "execute/data/little_endian.h"

namespace systole {
namespace {

class TfrecordWriter : public RecordWriter {
 public:
  explicit TfrecordWriter(std::unique_ptr<CompressingFile> file) : file_(std::move(file)) {}

  Status add(std::string_view record) override {
    std::vector<std::byte>& frame = frame_;
    frame.clear();
    systole::put(frame, static_cast<std::uint64_t>(record.size()));
    systole::put(frame, masked_crc32c(std::span(frame).first(8)));
    TRY(put(frame));
    const auto data = std::as_bytes(std::span(record.data(), record.size()));
    TRY(file_->append(record));
    frame.clear();
    systole::put(frame, masked_crc32c(data));
    return put(frame);
  }

  Status add_fields(std::span<const RecordField> fields) override { return add(make_example(fields)); }

  Status finish() override { return file_->finish(); }

 private:
  Status put(std::span<const std::byte> bytes) {
    return file_->append({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  std::unique_ptr<CompressingFile> file_;
  std::vector<std::byte> frame_;
};

}  // namespace

Result<std::unique_ptr<RecordWriter>> create_tfrecord(Store& store, const std::string& path,
                                                      TfrecordCompression compression) {
  std::unique_ptr<CompressingFile> file =
      compression == TfrecordCompression::zlib
          ? TRY(create_zlib(store, path))
          : TRY(create_compressed(store, path,
                                  compression == TfrecordCompression::gzip ? Compression::gzip : Compression::none));
  return std::unique_ptr<RecordWriter>(std::make_unique<TfrecordWriter>(std::move(file)));
}

}  // namespace systole
