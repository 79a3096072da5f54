#pragma once
// Clock: time as a parameter, so that tests can control it. It has a steady time for durations, with an arbitrary zero,
// and a calendar time for records. Thread-safe.

#include <chrono>
#include <cstdint>
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
  virtual void sleep(Seconds duration) = 0;  // sleeps at least `duration`; returns at once if it is not positive
  std::string timestamp();                   // calendar() as "2025-06-30T23:59:59.123Z"
  std::int64_t unix_time();                  // calendar() in whole seconds since 1970, as in ledgers
};

// UTC to the millisecond, ISO 8601.
std::string to_iso8601(std::chrono::system_clock::time_point time);

std::unique_ptr<Clock> real_clock();

// A clock that only moves when told to; sleep advances it at once. Starts at 0 and 2000-01-01T00:00:00Z.
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
