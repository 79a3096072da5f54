#include "ground/base/in_order.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace systole {
namespace {

class Pipeline {
 public:
  Pipeline(int threads, const OrderedSteps& steps) : steps_(steps), worked_on_(ordered_slots(threads)) {
    for (int i = 1; i < threads; ++i) others_.emplace_back([this] { help(); });
  }
  ~Pipeline() {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    claimed_ = filled_;  // what nobody began is left
    changed_.notify_all();
  }

  Status run() {
    std::optional<Error> wrong;
    for (bool more = true; more || used_ < filled_;) {
      if (is_ready()) {
        TRY(use_next());
      } else if (more && filled_ - used_ < worked_on_.size()) {
        Result<bool> filled = steps_.fill(filled_ % worked_on_.size());
        more = filled.ok() && *filled;
        if (!filled.ok()) wrong = std::move(filled).error();
        if (more) add();
      } else if (std::unique_lock lock(mutex_); !work_on_next(lock)) {
        changed_.wait(lock, [&] { return thrown_ != nullptr || worked_on_[used_ % worked_on_.size()]; });
      }
    }
    if (wrong) return *std::move(wrong);
    return Done{};
  }

 private:
  bool is_ready() {
    const std::scoped_lock lock(mutex_);
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
    return used_ < filled_ && worked_on_[used_ % worked_on_.size()];
  }
  Status use_next() {
    const std::size_t slot = used_++ % worked_on_.size();
    {
      const std::scoped_lock lock(mutex_);
      worked_on_[slot] = false;
    }
    return steps_.use(slot);
  }
  void add() {
    const std::scoped_lock lock(mutex_);
    ++filled_;
    changed_.notify_all();
  }

  void help() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      try {
        if (work_on_next(lock)) continue;
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        thrown_ = std::current_exception();
        changed_.notify_all();
        return;
      }
      changed_.wait(lock, [this] { return ended_ || claimed_ < filled_; });
    }
  }
  // False if no unit waits. REQUIRES: the lock is held; it is not while there is work.
  bool work_on_next(std::unique_lock<std::mutex>& lock) {
    if (claimed_ == filled_) return false;
    const std::size_t slot = claimed_++ % worked_on_.size();
    lock.unlock();
    steps_.work(slot);
    lock.lock();
    worked_on_[slot] = true;
    changed_.notify_all();
    return true;
  }

  const OrderedSteps& steps_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t filled_ = 0, claimed_ = 0, used_ = 0;  // units; used_ is of this thread alone
  std::vector<bool> worked_on_;                      // by slot
  std::exception_ptr thrown_;
  bool ended_ = false;
  std::vector<std::jthread> others_;  // last: they end before what they use
};

}  // namespace

std::size_t ordered_slots(int threads) { return threads == 1 ? 1 : 2 * static_cast<std::size_t>(threads); }

Status run_in_order(int threads, const OrderedSteps& steps) {
  CHECK(threads >= 1, "{} threads", threads);
  return Pipeline(threads, steps).run();
}

}  // namespace systole
