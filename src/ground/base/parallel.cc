#include "ground/base/parallel.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace systole {

namespace {

class Team {
 public:
  Team(std::size_t count, const std::function<Status(std::size_t)>& work) : count_(count), work_(work) {}

  void run() {
    while (const auto item = next()) {
      try {
        auto done = work_(*item);
        if (!done) failed(*item, std::move(done).error());
      } catch (...) {
        const std::scoped_lock lock(mutex_);
        if (!thrown_) thrown_ = std::current_exception();
      }
    }
  }

  Status result() {
    if (thrown_) std::rethrow_exception(thrown_);
    if (error_) return *std::move(error_);
    return {};
  }

 private:
  std::optional<std::size_t> next() {
    const std::scoped_lock lock(mutex_);
    if (next_ == count_ || error_ || thrown_) return std::nullopt;
    return next_++;
  }
  void failed(std::size_t item, Error error) {
    const std::scoped_lock lock(mutex_);
    if (error_ && item > failed_) return;
    failed_ = item;
    error_ = std::move(error);
  }

  const std::size_t count_;
  const std::function<Status(std::size_t)>& work_;
  std::mutex mutex_;
  std::size_t next_ = 0, failed_ = 0;
  std::optional<Error> error_;
  std::exception_ptr thrown_;
};

}  // namespace

Status for_each_in_parallel(std::size_t count, int threads, const std::function<Status(std::size_t)>& work) {
  Team team(count, work);
  const auto others = std::min<std::size_t>(count, static_cast<std::size_t>(std::max(threads, 1)));
  if (others <= 1) {
    team.run();
    return team.result();
  }
  {
    std::vector<std::jthread> running;
    for (std::size_t t = 1; t < others; ++t) running.emplace_back([&team] { team.run(); });
    team.run();
  }
  return team.result();
}

int io_threads() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8); }

}  // namespace systole
