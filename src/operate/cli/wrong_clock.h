#pragma once
// A clock that is wrong by so much, on purpose (inject.h): its calendar, as where nobody set the time, and its steady
// time, whose zero is another on every host.

#include "ground/base/clock.h"

namespace systole::cli {

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

}  // namespace systole::cli
