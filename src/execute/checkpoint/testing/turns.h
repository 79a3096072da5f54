#pragma once
// For tests: a deterministic scheduler of several writers. Every store call and every sleep of a writer is one turn,
// and a seed determines the order of turns, so any interleaving can be reproduced. A writer may die at its n-th call,
// like a killed process (the others and the store live on), or stop there and go on much later, like a suspended one.
//
//   Turns turns(seed);
//   turns.start(4, [&](int rank, Store& store, Clock& clock) { … });   // one thread each
//   turns.kill(2, 17); turns.stop(3, 5);
//   turns.run();                 // until all but the stopped ones have ended
//   turns.start(…); turns.go_on_after(40); turns.run();

#include <condition_variable>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "ground/base/clock.h"
#include "ground/base/os_error.h"
#include "ground/store/testing/faulty.h"

namespace systole::checkpoint {

class Turns {
 public:
  using Work = std::function<void(int rank, Store& store, Clock& clock)>;

  Turns(Store& store, std::uint64_t seed) : store_(store), random_(seed) {}
  ~Turns() { run_all(); }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Numbers the writers on from earlier groups, and ranks from 0 in each group. They begin at `run`. Each group's clock
  // begins an hour after the previous one.
  void start(int writers, const Work& work) {
    const std::scoped_lock lock(mutex_);
    for (int rank = 0; rank < writers; ++rank) {
      const int writer = started_++;
      ++alive_;
      chosen_is_.emplace_back();
      threads_.emplace_back([this, writer, rank, work] { live(writer, rank, work); });
    }
  }
  void kill(int writer, std::int64_t call, bool after = false) { kills_[writer] = {call, after}; }
  // The store refuses `calls` changing calls of the writer, starting with number `call`.
  void refuse(int writer, std::int64_t call, int number,
              std::int64_t calls = std::numeric_limits<std::int64_t>::max() / 2) {
    refusals_[writer] = {call, call + calls, number};
  }
  void stop(int writer, std::int64_t call) { stops_[writer] = call; }
  void go_on_after(std::int64_t turns) { go_on_at_ = turns_ + turns; }

  void run() {
    std::unique_lock lock(mutex_);
    going_ = true;
    choose();
    nobody_goes_on_.wait(lock, [this] { return waiting_.size() == alive_ && only_stopped(); });
    going_ = false;
  }
  std::int64_t calls(int writer) { return calls_[writer]; }
  std::int64_t turns() const { return turns_; }

 private:
  struct Refusal {
    std::int64_t call = 0, end = 0;
    int number = 0;
  };
  struct Death {
    std::int64_t call = 0;
    bool after = false;
  };

  void run_all() {
    go_on_at_ = 0;
    run();
    for (std::thread& thread : threads_) thread.join();
  }

  void live(int writer, int rank, const Work& work) {
    TurnStore store(*this, writer);
    TurnClock clock(*this, writer);
    try {
      turn(writer);
      work(rank, store, clock);
    } catch (const SimulatedCrash&) {}
    const std::scoped_lock lock(mutex_);
    --alive_;
    choose();
  }

  // Waits for this writer's turn.
  void turn(int writer) {
    std::unique_lock lock(mutex_);
    waiting_[writer] = true;
    choose();
    chosen_is_[static_cast<std::size_t>(writer)].wait(lock, [&] { return chosen_ == writer; });
    chosen_ = -1;
    waiting_.erase(writer);
    ++turns_;
  }

  bool is_stopped(int writer) const {
    const auto stop = stops_.find(writer);
    const auto calls = calls_.find(writer);
    return stop != stops_.end() && calls != calls_.end() && calls->second >= stop->second && turns_ < go_on_at_;
  }
  bool only_stopped() const {
    for (const auto& [writer, is] : waiting_) {
      if (!is_stopped(writer)) return false;
    }
    return true;
  }
  // Wakes only the chosen writer: there are many turns and many writers.
  void choose() {
    if (!going_ || chosen_ >= 0 || waiting_.size() != alive_) return;
    if (only_stopped()) return nobody_goes_on_.notify_all();
    std::vector<int> eligible;
    for (const auto& [writer, is] : waiting_) {
      if (!is_stopped(writer)) eligible.push_back(writer);
    }
    chosen_ = eligible[random_() % eligible.size()];
    chosen_is_[static_cast<std::size_t>(chosen_)].notify_one();
  }

  // Before and after a changing call.
  void before_call(int writer) {
    ++calls_[writer];
    turn(writer);
    const auto death = kills_.find(writer);
    if (death == kills_.end()) return;
    if (calls_[writer] > death->second.call || (calls_[writer] == death->second.call && !death->second.after))
      throw SimulatedCrash();
  }
  void after_call(int writer) {
    const auto death = kills_.find(writer);
    if (death != kills_.end() && calls_[writer] >= death->second.call) throw SimulatedCrash();
  }

  class TurnClock : public Clock {
   public:
    TurnClock(Turns& turns, int writer) : turns_(turns), writer_(writer), now_(3600.0 * writer) {}
    Seconds now() override { return now_; }
    std::chrono::system_clock::time_point calendar() override {
      return std::chrono::system_clock::time_point(
          std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::duration<double>(now_.count())));
    }
    void sleep(Seconds duration) override {
      turns_.turn(writer_);
      now_ += duration;
    }

   private:
    Turns& turns_;
    int writer_;
    Seconds now_;
  };

  class TurnFile : public WritableFile {
   public:
    TurnFile(Turns& turns, int writer, std::unique_ptr<WritableFile> file)
        : turns_(turns), writer_(writer), file_(std::move(file)) {}
    Status append(std::span<const std::byte> bytes) override {
      return turns_.call(writer_, [&] { return file_->append(bytes); });
    }
    Status sync() override {
      return turns_.call(writer_, [&] { return file_->sync(); });
    }
    Status close() override {
      return turns_.call(writer_, [&] { return file_->close(); });
    }

   private:
    Turns& turns_;
    int writer_;
    std::unique_ptr<WritableFile> file_;
  };

  class TurnStore : public Store {
   public:
    TurnStore(Turns& turns, int writer) : turns_(turns), writer_(writer) {}
    Result<std::unique_ptr<WritableFile>> create(std::string_view path) override {
      return wrapped(turns_.call(writer_, [&] { return turns_.store_.create(path); }));
    }
    Result<std::unique_ptr<WritableFile>> append_to(std::string_view path) override {
      return wrapped(turns_.call(writer_, [&] { return turns_.store_.append_to(path); }));
    }
    Status read(std::string_view path, std::int64_t offset, std::span<std::byte> into) override {
      turns_.turn(writer_);
      return turns_.store_.read(path, offset, into);
    }
    Result<Bytes> size(std::string_view path) override { return turns_.store_.size(path); }
    Result<bool> exists(std::string_view path) override {
      turns_.turn(writer_);
      return turns_.store_.exists(path);
    }
    Result<std::vector<std::string>> list(std::string_view dir) override {
      turns_.turn(writer_);
      return turns_.store_.list(dir);
    }
    Status make_dirs(std::string_view dir) override {
      return turns_.call(writer_, [&] { return turns_.store_.make_dirs(dir); });
    }
    Status rename(std::string_view from, std::string_view to) override {
      return turns_.call(writer_, [&] { return turns_.store_.rename(from, to); });
    }
    Status link(std::string_view from, std::string_view to) override {
      return turns_.call(writer_, [&] { return turns_.store_.link(from, to); });
    }
    Status remove(std::string_view path) override {
      return turns_.call(writer_, [&] { return turns_.store_.remove(path); });
    }
    Status remove_dir(std::string_view dir) override {
      return turns_.call(writer_, [&] { return turns_.store_.remove_dir(dir); });
    }
    Status sync_dir(std::string_view dir) override {
      return turns_.call(writer_, [&] { return turns_.store_.sync_dir(dir); });
    }
    Result<std::unique_ptr<FileLock>> try_lock(std::string_view dir) override {
      turns_.turn(writer_);
      return turns_.store_.try_lock(dir);
    }
    Result<Bytes> free_space() override { return turns_.store_.free_space(); }

   private:
    Result<std::unique_ptr<WritableFile>> wrapped(Result<std::unique_ptr<WritableFile>> file) {
      if (!file) return file;
      return std::unique_ptr<WritableFile>(std::make_unique<TurnFile>(turns_, writer_, *std::move(file)));
    }
    Turns& turns_;
    int writer_;
  };

  template <typename Act>
  auto call(int writer, Act act) -> decltype(act()) {
    before_call(writer);
    const auto refusal = refusals_.find(writer);
    if (refusal != refusals_.end() && calls_[writer] >= refusal->second.call && calls_[writer] < refusal->second.end)
      return os_error(refusal->second.number, "write", "the disk");
    auto result = act();
    after_call(writer);
    return result;
  }

  Store& store_;
  std::mt19937_64 random_;
  std::mutex mutex_;
  std::condition_variable nobody_goes_on_;
  std::deque<std::condition_variable> chosen_is_;  // by writer
  std::vector<std::thread> threads_;
  std::map<int, bool> waiting_;
  std::size_t alive_ = 0;
  int started_ = 0, chosen_ = -1;
  bool going_ = false;
  std::int64_t turns_ = 0, go_on_at_ = std::numeric_limits<std::int64_t>::max();
  std::map<int, std::int64_t> calls_, stops_;
  std::map<int, Death> kills_;
  std::map<int, Refusal> refusals_;
};

}  // namespace systole::checkpoint
