#include "ground/store/readable.h"

namespace systole {
namespace {

class ReadByName : public ReadableFile {
 public:
  ReadByName(Store& store, std::string path, Bytes size) : store_(store), path_(std::move(path)), size_(size) {}
  Bytes size() const override { return size_; }
  Status read(std::int64_t offset, std::span<std::byte> into) const override {
    return store_.read(path_, offset, into);
  }

 private:
  Store& store_;
  std::string path_;
  Bytes size_;
};

}  // namespace

Result<std::unique_ptr<ReadableFile>> open_to_read(Store& store, std::string_view path) {
  if (auto* opens = dynamic_cast<OpensFiles*>(&store)) return opens->open_to_read(path);
  const Bytes size = TRY(store.size(path));
  return std::unique_ptr<ReadableFile>(std::make_unique<ReadByName>(store, std::string(path), size));
}

}  // namespace systole
