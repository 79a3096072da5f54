#pragma once
// Fault injection (inject.h): a disk that fills up on command. Afterwards existing data is readable, and every write
// fails.

#include <atomic>
#include <cerrno>
#include <memory>
#include <utility>

#include "ground/base/os_error.h"
#include "ground/store/object_store.h"

namespace systole {

class FullDisk final : public ObjectStore {
 public:
  void fill() { full_ = true; }
  // The store as the disk shows it. REQUIRES: called before all else.
  static std::shared_ptr<ObjectStore> over(const std::shared_ptr<FullDisk>& disk, std::shared_ptr<ObjectStore> under) {
    disk->under_ = std::move(under);
    return disk;
  }

  Result<Bytes> size(std::string_view path) override { return under_->size(path); }
  Status get(std::string_view path, std::int64_t offset, std::span<std::byte> into) override {
    return under_->get(path, offset, into);
  }
  Result<Versioned> get_whole(std::string_view path, Bytes limit) override { return under_->get_whole(path, limit); }
  using ObjectStore::put;
  Result<Generation> put(std::string_view path, std::span<const std::byte> bytes, const Precondition& when,
                         Durability durability) override {
    if (full_ && !bytes.empty()) return os_error(ENOSPC, "write", path);
    return under_->put(path, bytes, when, durability);
  }
  Result<std::unique_ptr<Upload>> start_upload(std::string_view path) override {
    return std::unique_ptr<Upload>(
        std::make_unique<Watched>(TRY(under_->start_upload(path)), std::string(path), full_));
  }
  Result<ObjectList> list(std::string_view prefix, ListDepth depth) override { return under_->list(prefix, depth); }
  Status remove(std::string_view path, const Precondition& when) override { return under_->remove(path, when); }
  Result<Bytes> abort_uploads(std::string_view prefix) override { return under_->abort_uploads(prefix); }
  Status settle(std::string_view dir) override { return under_->settle(dir); }
  Status make_folder(std::string_view dir) override { return under_->make_folder(dir); }
  Result<Bytes> free_space() override { return full_ ? Bytes(0) : under_->free_space(); }

 private:
  class Watched final : public Upload {
   public:
    Watched(std::unique_ptr<Upload> upload, std::string path, const std::atomic<bool>& full)
        : upload_(std::move(upload)), path_(std::move(path)), full_(full) {}
    Status append(std::span<const std::byte> bytes) override {
      if (full_ && !bytes.empty()) return os_error(ENOSPC, "write", path_);
      return upload_->append(bytes);
    }
    Status complete(const Precondition& when, Durability durability) override {
      return upload_->complete(when, durability);
    }
    Status complete_as(std::string_view path, const Precondition& when, Durability durability) override {
      return upload_->complete_as(path, when, durability);
    }
    Status abort() override { return upload_->abort(); }

   private:
    std::unique_ptr<Upload> upload_;
    std::string path_;
    const std::atomic<bool>& full_;
  };

  std::shared_ptr<ObjectStore> under_;
  std::atomic<bool> full_ = false;
};

}  // namespace systole
