#pragma once
// A disk that fills up when it is told to, on purpose (inject.h): from then on what exists is read as before, and
// nothing more can be written.

#include <atomic>
#include <cerrno>
#include <utility>

#include "ground/base/os_error.h"
#include "ground/store/store.h"

namespace systole::cli {

class FullDisk final : public Store {
 public:
  void fill() { full_ = true; }
  // REQUIRES of all else: called before. `under` must outlive it.
  Store& over(Store& under) {
    under_ = &under;
    return *this;
  }

  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override {
    return watched(under_->create(path), path);
  }
  Result<std::unique_ptr<WritableFile>> append_to(std::string_view path) override {
    return watched(under_->append_to(path), path);
  }
  Status read(std::string_view path, std::int64_t offset, std::span<std::byte> into) override {
    return under_->read(path, offset, into);
  }
  Result<Bytes> size(std::string_view path) override { return under_->size(path); }
  Result<bool> exists(std::string_view path) override { return under_->exists(path); }
  Result<std::vector<std::string>> list(std::string_view dir) override { return under_->list(dir); }
  Status make_dirs(std::string_view dir) override { return under_->make_dirs(dir); }
  Status rename(std::string_view from, std::string_view to) override { return under_->rename(from, to); }
  Status remove(std::string_view path) override { return under_->remove(path); }
  Status sync_dir(std::string_view dir) override { return under_->sync_dir(dir); }
  Result<Bytes> free_space() override { return full_ ? Bytes(0) : under_->free_space(); }

 private:
  class File final : public WritableFile {
   public:
    File(std::unique_ptr<WritableFile> file, std::string path, const std::atomic<bool>& full)
        : file_(std::move(file)), path_(std::move(path)), full_(full) {}
    Status append(std::span<const std::byte> bytes) override {
      if (full_ && !bytes.empty()) return os_error(ENOSPC, "write", path_);
      return file_->append(bytes);
    }
    Status sync() override { return file_->sync(); }
    Status close() override { return file_->close(); }

   private:
    std::unique_ptr<WritableFile> file_;
    std::string path_;
    const std::atomic<bool>& full_;
  };

  Result<std::unique_ptr<WritableFile>> watched(Result<std::unique_ptr<WritableFile>> file, std::string_view path) {
    if (!file.ok()) return file;
    return std::unique_ptr<WritableFile>(std::make_unique<File>(*std::move(file), std::string(path), full_));
  }

  Store* under_ = nullptr;
  std::atomic<bool> full_ = false;
};

}  // namespace systole::cli
