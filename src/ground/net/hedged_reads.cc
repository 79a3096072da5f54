#include "ground/net/hedged_reads.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>

namespace systole {
namespace {

constexpr std::size_t kKnown = 128, kEnough = 32;
constexpr Seconds kLeast{0.002};  // below it a second read costs more than it saves

class Stopwatch {
 public:
  Seconds read() const {
    return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count());
  }

 private:
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

Status guarded(const std::function<Status(ReadSink&)>& read, ReadSink& sink) {
  try {
    return read(sink);
  } catch (const Failure& failure) { return failure.error(); }
}

}  // namespace

bool ReadSink::put(std::size_t at, std::string_view piece) {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  const std::size_t room = into_.size() - std::min(at, into_.size()), some = std::min(room, piece.size());
  if (some > 0) std::memcpy(into_.data() + at, piece.data(), some);
  return true;
}
void ReadSink::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}
bool ReadSink::is_closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

// The first read, on a thread of its own.
struct HedgedReads::First {
  explicit First(std::span<std::byte> into) : sink(into) {}

  std::mutex mutex;
  std::condition_variable ended;
  ReadSink sink;
  std::optional<Status> result;
  ReadSink* second = nullptr;
  std::thread thread;

  void run(const std::function<Status(ReadSink&)>& read) {
    Status done = guarded(read, sink);
    const std::lock_guard lock(mutex);
    if (done.ok() && second != nullptr) second->close();
    result = std::move(done);
    ended.notify_all();
  }
};

HedgedReads::~HedgedReads() {
  for (const std::shared_ptr<First>& first : late_) first->thread.join();
}

std::optional<Seconds> HedgedReads::patience() const {
  std::vector<Seconds> took;
  {
    const std::lock_guard lock(mutex_);
    if (took_.size() < kEnough) return std::nullopt;
    took = took_;
  }
  const auto at = took.begin() + static_cast<std::ptrdiff_t>(took.size() * 99 / 100);
  std::ranges::nth_element(took, at);
  return std::max(*at, kLeast);
}

std::int64_t HedgedReads::seconds_begun() const {
  const std::lock_guard lock(mutex_);
  return seconds_begun_;
}

void HedgedReads::note(Seconds took) {
  const std::lock_guard lock(mutex_);
  if (took_.size() < kKnown) {
    took_.push_back(took);
  } else {
    took_[next_++ % kKnown] = took;
  }
}

Result<int> HedgedReads::alone(std::span<std::byte> into, const std::function<Status(ReadSink&)>& read) {
  const Stopwatch watch;
  ReadSink sink(into);
  TRY(read(sink));
  note(watch.read());
  return 0;
}

// Joins those that have ended meanwhile.
void HedgedReads::keep(std::shared_ptr<First> first) {
  const std::lock_guard lock(mutex_);
  std::erase_if(late_, [](const std::shared_ptr<First>& late) {
    {
      const std::lock_guard of_late(late->mutex);
      if (!late->result) return false;
    }
    late->thread.join();
    return true;
  });
  late_.push_back(std::move(first));
}

Result<int> HedgedReads::race(std::span<std::byte> into, std::function<Status(ReadSink&)> read) {
  const std::optional<Seconds> most = patience();
  if (!most) return alone(into, read);
  const Stopwatch watch;
  const auto first = std::make_shared<First>(into);
  try {
    first->thread = std::thread([first = first.get(), read] { first->run(read); });
  } catch (const std::system_error&) { return alone(into, read); }  // no more threads here
  std::unique_lock lock(first->mutex);
  const auto ended = [&] { return first->result.has_value(); };
  const bool in_time = first->ended.wait_for(lock, std::chrono::duration<double>(most->count()), ended);
  const auto own = in_time ? nullptr : std::make_unique_for_overwrite<std::byte[]>(into.size());
  ReadSink second(std::span(own.get(), in_time ? 0 : into.size()), 1);
  if (!in_time) {
    first->second = &second;
    lock.unlock();
    {
      const std::lock_guard count(mutex_);
      ++seconds_begun_;
    }
    const Status done = guarded(read, second);
    lock.lock();
    first->second = nullptr;
    const bool first_won = ended() && first->result->ok();
    if (done.ok() && !first_won && !second.is_closed()) {
      lock.unlock();
      first->sink.close();
      std::memcpy(into.data(), own.get(), into.size());
      note(watch.read());
      keep(first);
      return 1;
    }
    first->ended.wait(lock, ended);
  }
  const Status done = *first->result;
  lock.unlock();
  first->thread.join();
  if (!done.ok()) return done.error();
  note(watch.read());
  return 0;
}

Status HedgedReads::read(std::span<std::byte> into, std::function<Status(ReadSink&)> read) {
  TRY(race(into, std::move(read)));
  return {};
}

}  // namespace systole
