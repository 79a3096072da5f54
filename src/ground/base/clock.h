#pragma once
// Time, handed in so that tests can hold it. Two clocks in one: a steady one for durations, whose zero means nothing,
// and the calendar for records. Thread-safe.

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "ground/base/units.h"

namespace systole {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Seconds now() = 0;  // steady, never goes back
  virtual std::chrono::system_clock::time_point calendar() = 0;
  virtual void sleep(Seconds duration) = 0;  // at least so long; not at all when not positive
  std::string timestamp();                   // calendar() as "2025-06-30T23:59:59.123Z"
};

// UTC to the millisecond, ISO 8601.
std::string to_iso8601(std::chrono::system_clock::time_point time);

std::unique_ptr<Clock> real_clock();

// Stands still until it is told to move; sleep moves it at once. Begins at 0 and 2000-01-01T00:00:00Z.
class FakeClock : public Clock {
 public:
  Seconds now() override;
  std::chrono::system_clock::time_point calendar() override;
  void sleep(Seconds duration) override;
  void advance(Seconds duration);

 private:
  std::mutex mutex_;
  Seconds now_{};
};

}  // namespace systole
