#pragma once
// A second read like the first, begun when the first takes longer than 99 of 100 did; who is done first counts (Dean and
// Barroso, "The tail at scale", CACM 2013). So one stalled connection costs a little more than a usual read, and about
// one more request in a hundred. Thread-safe.

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

// Where a read puts its bytes. Closed, it takes no more: another read is done.
class ReadSink {
 public:
  explicit ReadSink(std::span<std::byte> into, int which = 0) : into_(into), which_(which) {}
  std::size_t size() const { return into_.size(); }
  int which() const { return which_; }  // 0: of the first read, 1: of the second
  // Puts the bytes at `at`, as far as there is room. False: it is closed.
  bool put(std::size_t at, std::string_view piece);
  void close();
  bool is_closed() const;

 private:
  mutable std::mutex mutex_;
  bool closed_ = false;
  const std::span<std::byte> into_;
  const int which_;
};

class HedgedReads {
 public:
  HedgedReads() = default;
  ~HedgedReads();  // waits for reads that lost, which look at their sink once a second or more often
  HedgedReads(const HedgedReads&) = delete;

  // Fills `into` by `read`, which is called once or twice and at the same time; it owns what it uses, for it may go on
  // after this has returned. Returns which of the two filled it. Errors: those of `read`.
  Result<int> race(std::span<std::byte> into, std::function<Status(ReadSink&)> read);
  // The same, where nobody asks which.
  Status read(std::span<std::byte> into, std::function<Status(ReadSink&)> read);
  // How long a read is waited for alone; nothing before enough of them are known.
  std::optional<Seconds> patience() const;
  std::int64_t seconds_begun() const;  // second reads so far

 private:
  struct First;
  Result<int> alone(std::span<std::byte> into, const std::function<Status(ReadSink&)>& read);
  void note(Seconds took);
  void keep(std::shared_ptr<First> first);

  mutable std::mutex mutex_;
  std::vector<Seconds> took_;  // the last kKnown, in a ring
  std::size_t next_ = 0;
  std::int64_t seconds_begun_ = 0;
  std::list<std::shared_ptr<First>> late_;
};

}  // namespace systole
