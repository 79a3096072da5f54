// Writes a WebDataset tar file (webdataset.h).

#include <algorithm>

#include "execute/data/formats/compressing_file.h"
#include "execute/data/formats/tar_header.h"
#include "execute/data/formats/webdataset.h"

namespace systole {
namespace {

constexpr std::int64_t kTarRecord = 20 * kTarBlock;  // the file is padded to a multiple of it

class WebDatasetWriter : public RecordWriter {
 public:
  explicit WebDatasetWriter(std::unique_ptr<CompressingFile> file) : file_(std::move(file)) {}

  Status add(std::string_view record) override {
    const RecordField field{"bin", record};
    return add_fields(std::span(&field, 1));
  }

  Status add_fields(std::span<const RecordField> fields) override {
    sorted_.assign(fields.begin(), fields.end());
    std::ranges::sort(sorted_, {}, &RecordField::name);
    std::string key = fmt::format("{:09}", records_);
    for (const RecordField& field : sorted_)
      if (field.name == "__key__") key = field.bytes;
    TRY(check(key));
    for (const RecordField& field : sorted_)
      if (field.name != "__key__") TRY(add_member(key + "." + std::string(field.name), field.bytes));
    last_key_ = std::move(key);
    ++records_;
    return Done{};
  }

  Status finish() override {
    const std::int64_t whole = (size_ + 2 * kTarBlock + kTarRecord - 1) / kTarRecord * kTarRecord;
    TRY(pad(whole - size_));
    return file_->finish();
  }

 private:
  // What the reader would not give back as it is.
  Status check(std::string_view key) const {
    const auto refuse = [&](std::string what) { return record_error(ErrorKind::invalid, {"", records_, -1}, what); };
    const std::string_view base = key.substr(key.rfind('/') + 1);
    if (base.empty() || base.find('.') != base.npos || key.starts_with('/') || key.find('\0') != key.npos ||
        key == ".." || key.find("../") != key.npos)
      return refuse(
          fmt::format("the key '{}' cannot name files: it has no name, a dot in it, or leads out of the folder", key));
    if (records_ > 0 && key == last_key_) return refuse(fmt::format("the key '{}' follows itself", key));
    std::string_view before;
    bool any = false;
    for (const RecordField& field : sorted_) {
      if (field.name == "__key__") continue;
      const bool upper = std::ranges::any_of(field.name, [](char c) { return c >= 'A' && c <= 'Z'; });
      if (field.name.empty() || upper || field.name.find('/') != field.name.npos ||
          field.name.find('\0') != field.name.npos || (any && field.name == before))
        return refuse(fmt::format(
            "the field '{}' cannot end a file's name: it is empty, there twice, or has a '/' or a capital letter",
            field.name));
      before = field.name;
      any = true;
    }
    return any ? Status() : Status(refuse("a sample without fields"));
  }

  Status add_member(const std::string& name, std::string_view bytes) {
    const std::string headers = tar_headers_of(name, static_cast<std::int64_t>(bytes.size()));
    TRY(file_->append(headers));
    TRY(file_->append(bytes));
    size_ += static_cast<std::int64_t>(headers.size() + bytes.size());
    return pad(padded_to_block(size_) - size_);
  }

  Status pad(std::int64_t bytes) {
    size_ += bytes;
    return file_->append(std::string(static_cast<std::size_t>(bytes), '\0'));
  }

  std::unique_ptr<CompressingFile> file_;
  std::vector<RecordField> sorted_;
  std::string last_key_;
  std::int64_t size_ = 0, records_ = 0;
};

}  // namespace

Result<std::unique_ptr<RecordWriter>> create_webdataset(Store& store, const std::string& path) {
  const Compression compression =
      path.ends_with(".tgz") ? Compression::gzip : compression_of(path, Compression::by_name);
  return std::unique_ptr<RecordWriter>(
      std::make_unique<WebDatasetWriter>(TRY(create_compressed(store, path, compression))));
}

}  // namespace systole
