#include "operate/observe/event_file.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace systole {

class EventFile::Writer {
 public:
  Writer(std::unique_ptr<WritableFile> file, EventFileOptions options)
      : file_(std::move(file)), options_(std::move(options)), ring_(std::max<std::size_t>(1, options_.capacity)) {
    thread_ = std::jthread([this] { loop(); });
  }

  ~Writer() { static_cast<void>(close()); }

  Status close() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    work_.notify_one();
    if (thread_.joinable()) {
      thread_.join();
      if (!failed_) keep(file_->sync());
      keep(file_->close());
    }
    if (failed_) return *failed_;
    return Done{};
  }

  void add(const Event& event) {
    std::unique_lock lock(mutex_);
    if (ending_) return;
    if (added_ - taken_ == ring_.size()) {
      work_.notify_one();
      room_.wait(lock, [this] { return added_ - taken_ < ring_.size(); });
    }
    ring_[added_ % ring_.size()] = event;
    ++added_;
  }

  Status flush() {
    std::unique_lock lock(mutex_);
    const std::uint64_t until = added_;
    wanted_ = std::max(wanted_, until);
    work_.notify_one();
    done_.wait(lock, [this, until] { return written_ >= until; });
    if (failed_) return *failed_;
    return Done{};
  }

  std::optional<Error> failed() const {
    const std::lock_guard lock(mutex_);
    return failed_;
  }

 private:
  void keep(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (!status.ok() && !failed_) failed_ = status.error();
  }

  void loop() {
    const auto every = std::chrono::duration<double>(options_.write_every.count());
    std::unique_lock lock(mutex_);
    while (true) {
      work_.wait_for(lock, every, [this] { return ending_ || wanted_ > written_ || added_ - taken_ == ring_.size(); });
      drain(lock);
      if (ending_ && written_ == added_) return;
    }
  }

  // Writes everything that was added before the call; releases the lock while formatting and writing.
  void drain(std::unique_lock<std::mutex>& lock) {
    const std::uint64_t until = added_;
    if (taken_ == until) return;
    lines_.clear();
    while (taken_ < until) {
      const Event event = std::move(ring_[taken_ % ring_.size()]);
      ++taken_;
      room_.notify_one();
      lock.unlock();
      lines_ += to_json_line(event);
      if (options_.listener) options_.listener(event);
      lock.lock();
    }
    if (!failed_) {
      lock.unlock();
      const Status appended = file_->append(std::as_bytes(std::span(lines_)));
      lock.lock();
      if (!appended.ok()) fail(appended.error(), lock);
    }
    written_ = until;
    done_.notify_all();
  }

  void fail(const Error& why, std::unique_lock<std::mutex>& lock) {
    failed_ = why;
    const bool awaited = ending_ || wanted_ > written_;
    if (awaited || !options_.on_failure) return;
    lock.unlock();
    options_.on_failure(why);
    lock.lock();
  }

  std::unique_ptr<WritableFile> file_;
  EventFileOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable work_, room_, done_;
  std::vector<Event> ring_;  // event n is in slot n mod capacity
  std::uint64_t added_ = 0, taken_ = 0, written_ = 0, wanted_ = 0;
  bool ending_ = false;
  std::optional<Error> failed_;
  std::string lines_;  // used only by the writer
  std::jthread thread_;
};

EventFile::EventFile(std::unique_ptr<Writer> writer, Store& store, std::string path)
    : writer_(std::move(writer)), store_(store), path_(std::move(path)) {}
EventFile::~EventFile() { static_cast<void>(close()); }

Result<std::unique_ptr<EventFile>> EventFile::open(Store& store, const std::string& path, EventFileOptions options) {
  auto file = TRY(store.append_to(path));
  return std::unique_ptr<EventFile>(
      new EventFile(std::make_unique<Writer>(std::move(file), std::move(options)), store, path));
}

Status EventFile::close() {
  TRY(writer_->close());
  const Result<Bytes> size = store_.size(path_);
  return size.ok() && *size == Bytes() ? store_.remove(path_) : Status();
}
void EventFile::add(const Event& event) { writer_->add(event); }
Status EventFile::flush() { return writer_->flush(); }
std::optional<Error> EventFile::failed() const { return writer_->failed(); }

}  // namespace systole
