#include "execute/checkpoint/async_save.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace systole::checkpoint {

namespace {

constexpr std::int64_t kAlignment = 64;

std::int64_t aligned(Bytes bytes) { return (bytes.count() + kAlignment - 1) / kAlignment * kAlignment; }

// Exceptions do not leave the I/O thread: they become the error of the save.
Result<SaveReport> save_without_throwing(const Folder& folder, const SaveRequest& request, const SaveOptions& options) {
  try {
    return save(folder, request, options);
  } catch (const Failure& failure) { return failure.error(); } catch (const std::exception& exception) {
    return error(ErrorKind::internal, "saving checkpoint {} ended with: {}", request.step, exception.what());
  }
}

}  // namespace

class AsyncSaver::Worker {
 public:
  Worker(Folder folder, SaveOptions options, Bytes buffer_bytes)
      : folder_(std::move(folder)),
        options_(std::move(options)),
        buffer_(static_cast<std::size_t>(buffer_bytes.count())),
        thread_([this] { run(); }) {}

  ~Worker() {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // Takes the worker's request for filling. Errors: busy, or the failure of the previous save.
  Status claim() {
    const std::scoped_lock lock(mutex_);
    if (state_ == State::saving) {
      return error(ErrorKind::busy, "checkpoint {} is still being written", request_.step)
          .hinted("wait for it, or save less often (checkpoint.every)");
    }
    if (result_ && !result_->ok()) return told();
    result_.reset();
    return {};
  }

  Status copy(const SaveRequest& request) {
    if (options_.on_phase) options_.on_phase(SavePhase::snapshot, true);
    auto copied = copy_tensors(request);
    if (options_.on_phase) options_.on_phase(SavePhase::snapshot, false);
    return copied;
  }

  void set_request(const SaveRequest& request) {
    request_ = request;
    request_.number = ++saves_;
  }

  void start() {
    {
      const std::scoped_lock lock(mutex_);
      state_ = State::saving;
    }
    changed_.notify_all();
  }

  Result<std::optional<SaveReport>> take(bool wait) {
    std::unique_lock lock(mutex_);
    if (wait) changed_.wait(lock, [this] { return state_ == State::idle; });
    if (state_ == State::saving || !result_) return std::optional<SaveReport>();
    if (!result_->ok()) return told();
    std::optional<SaveReport> report(std::move(*result_).value());
    result_.reset();
    return report;
  }

  bool in_flight() const {
    const std::scoped_lock lock(mutex_);
    return state_ == State::saving;
  }

  std::span<std::byte> buffer() { return buffer_; }

 private:
  enum class State { idle, saving };

  Error told() {
    Error reason = std::move(*result_).error();
    result_.reset();
    return reason;
  }

  Status copy_tensors(const SaveRequest& request) {
    const Bytes needed = snapshot_bytes(request.tensors);
    if (needed.count() > static_cast<std::int64_t>(buffer_.size())) {
      return error(ErrorKind::does_not_fit, "the snapshot takes {} bytes and {} were planned",
                   with_commas(needed.count()), with_commas(static_cast<std::int64_t>(buffer_.size())));
    }
    set_request(request);
    std::size_t at = 0;
    for (TensorPart& part : request_.tensors) {
      const auto slot = std::span(buffer_).subspan(at, static_cast<std::size_t>(part.saved_bytes().count()));
      copy_part(part.box, size_of(part.dtype), part.held.value_or(part.box), part.bytes, part.box, slot);
      at += static_cast<std::size_t>(aligned(part.saved_bytes()));
      part.bytes = slot;
      part.held.reset();
    }
    return {};
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || state_ == State::saving; });
      if (state_ != State::saving) return;
      lock.unlock();
      auto result = save_without_throwing(folder_, request_, options_);
      lock.lock();
      result_.emplace(std::move(result));
      state_ = State::idle;
      changed_.notify_all();
    }
  }

  const Folder folder_;
  const SaveOptions options_;
  std::vector<std::byte> buffer_;
  SaveRequest request_;  // owned by the caller while idle, by the I/O thread while saving
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::idle;
  std::int64_t saves_ = 0;  // saves begun, including failed ones
  bool stopping_ = false;
  std::optional<Result<SaveReport>> result_;  // of the last save, until reported
  std::thread thread_;                        // last: it uses all of the above
};

AsyncSaver::AsyncSaver(Folder folder, SaveOptions options, Bytes buffer_bytes)
    : worker_(std::make_unique<Worker>(std::move(folder), std::move(options), buffer_bytes)) {}
AsyncSaver::~AsyncSaver() = default;

Status AsyncSaver::begin(const SaveRequest& request) {
  TRY(worker_->claim());
  TRY(worker_->copy(request));
  worker_->start();
  return {};
}

Status AsyncSaver::begin_in_place(const SaveRequest& request) {
  TRY(worker_->claim());
  worker_->set_request(request);
  worker_->start();
  return {};
}

Result<std::optional<SaveReport>> AsyncSaver::poll() { return worker_->take(false); }
Result<std::optional<SaveReport>> AsyncSaver::wait() { return worker_->take(true); }
bool AsyncSaver::in_flight() const { return worker_->in_flight(); }
std::span<std::byte> AsyncSaver::buffer() { return worker_->buffer(); }

Bytes snapshot_bytes(std::span<const TensorPart> parts) {
  std::int64_t sum = 0;
  for (const TensorPart& part : parts) sum += aligned(part.saved_bytes());
  return Bytes(sum);
}

}  // namespace systole::checkpoint
