#pragma once
// A file that is written under a hidden name beside `path`, of this writer alone, and has its name once it is whole:
// what record writers write to. The hidden file of a process that is killed stays. Bytes are gathered, so that small
// records cost no call of the system each.

#include <memory>
#include <string>
#include <vector>

#include "ground/store/store.h"

namespace systole {

class PartialFile {
 public:
  // Errors: as Store::create. Borrows the store.
  static Result<std::unique_ptr<PartialFile>> create(Store& store, std::string path);
  ~PartialFile();  // what is not finished is removed

  Status append(std::span<const std::byte> bytes);
  Status append(std::string_view text) { return append(std::as_bytes(std::span(text.data(), text.size()))); }
  std::int64_t size() const { return size_; }  // appended so far
  // Bytes and name survive a power cut. Nothing may be called after it.
  Status finish();

 private:
  PartialFile(Store& store, std::string path);
  Status flush();

  Store& store_;
  std::string path_, partial_;
  std::unique_ptr<WritableFile> file_;
  std::vector<std::byte> pending_;
  std::int64_t size_ = 0;
};

}  // namespace systole
