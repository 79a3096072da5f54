#pragma once
// Fault injection (inject.h): a clock that is wrong by a fixed offset. Its calendar is wrong, as on a host whose time
// is not set, and so is its steady time, whose zero differs between hosts.

#include "ground/base/clock.h"

namespace systole {

class WrongClock final : public Clock {
 public:
  WrongClock(Clock& right, Seconds by) : right_(right), by_(by) {}
  Seconds now() override { return right_.now() + by_; }
  std::chrono::system_clock::time_point calendar() override {
    return right_.calendar() +
           std::chrono::round<std::chrono::system_clock::duration>(std::chrono::duration<double>(by_.count()));
  }
  void sleep(Seconds duration) override { right_.sleep(duration); }

 private:
  Clock& right_;
  const Seconds by_;
};

}  // namespace systole
