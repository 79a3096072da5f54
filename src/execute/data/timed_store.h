#pragma once
// A store that counts what is read of another, and how long that takes. Private to the probe.

#include "ground/base/clock.h"
#include "ground/store/readable.h"
#include "ground/store/store.h"

namespace systole {

class TimedStore : public Store, public OpensFiles {
 public:
  TimedStore(Store& store, Clock& clock) : store_(store), clock_(clock) {}  // borrows both

  Bytes bytes() const { return bytes_; }
  Seconds reading() const { return reading_; }
  Seconds opening() const { return opening_; }  // looks at sizes and names, and reads of nothing

  Status read(std::string_view path, std::int64_t offset, std::span<std::byte> into) override {
    const Seconds began = clock_.now();
    Status done = store_.read(path, offset, into);
    count(into.size(), began);
    return done;
  }
  Result<std::unique_ptr<ReadableFile>> open_to_read(std::string_view path) override {
    const Seconds began = clock_.now();
    std::unique_ptr<ReadableFile> file = TRY(systole::open_to_read(store_, path));
    opening_ += clock_.now() - began;
    return std::unique_ptr<ReadableFile>(std::make_unique<TimedFile>(*this, std::move(file)));
  }
  Result<Bytes> size(std::string_view path) override {
    const Seconds began = clock_.now();
    Result<Bytes> size = store_.size(path);
    opening_ += clock_.now() - began;
    return size;
  }
  Result<bool> exists(std::string_view path) override { return store_.exists(path); }
  Result<std::vector<std::string>> list(std::string_view dir) override { return store_.list(dir); }
  Result<Bytes> free_space() override { return store_.free_space(); }

  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override { return store_.create(path); }
  Result<std::unique_ptr<WritableFile>> append_to(std::string_view path) override { return store_.append_to(path); }
  Status make_dirs(std::string_view dir) override { return store_.make_dirs(dir); }
  Status rename(std::string_view from, std::string_view to) override { return store_.rename(from, to); }
  Status link(std::string_view from, std::string_view to) override { return store_.link(from, to); }
  Status remove(std::string_view path) override { return store_.remove(path); }
  Status remove_dir(std::string_view dir) override { return store_.remove_dir(dir); }
  Status sync_dir(std::string_view dir) override { return store_.sync_dir(dir); }
  Result<std::unique_ptr<FileLock>> try_lock(std::string_view dir) override { return store_.try_lock(dir); }

 private:
  class TimedFile : public ReadableFile {
   public:
    TimedFile(TimedStore& store, std::unique_ptr<ReadableFile> file) : store_(store), file_(std::move(file)) {}
    Bytes size() const override { return file_->size(); }
    Status read(std::int64_t offset, std::span<std::byte> into) const override {
      const Seconds began = store_.clock_.now();
      Status done = file_->read(offset, into);
      store_.count(into.size(), began);
      return done;
    }

   private:
    TimedStore& store_;
    std::unique_ptr<ReadableFile> file_;
  };

  void count(std::size_t bytes, Seconds began) {
    reading_ += clock_.now() - began;
    bytes_ += Bytes(static_cast<std::int64_t>(bytes));
  }

  Store& store_;
  Clock& clock_;
  Bytes bytes_;
  Seconds reading_, opening_;
};

}  // namespace systole
