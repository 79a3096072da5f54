#include "ground/base/clock.h"

#include <algorithm>
#include <ctime>
#include <thread>

#include "ground/base/error.h"

namespace systole {
namespace {

class RealClock : public Clock {
 public:
  Seconds now() override {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return Seconds(std::chrono::duration<double>(since).count());
  }
  std::chrono::system_clock::time_point calendar() override { return std::chrono::system_clock::now(); }
  void sleep(Seconds duration) override {
    if (duration.count() > 0) std::this_thread::sleep_for(std::chrono::duration<double>(duration.count()));
  }
};

constexpr std::int64_t kYear2000 = 946'684'800;  // Unix seconds of 2000-01-01T00:00:00Z

}  // namespace

std::string to_iso8601(std::chrono::system_clock::time_point time) {
  using std::chrono::floor, std::chrono::milliseconds;
  const std::int64_t total = floor<milliseconds>(time.time_since_epoch()).count();
  const std::int64_t millis = ((total % 1000) + 1000) % 1000;
  const std::time_t seconds = (total - millis) / 1000;
  std::tm parts{};
  CHECK(::gmtime_r(&seconds, &parts) != nullptr, "no date of {} s", seconds);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, millis);
}

std::string Clock::timestamp() { return to_iso8601(calendar()); }

std::int64_t Clock::unix_time() { return std::chrono::system_clock::to_time_t(calendar()); }

std::unique_ptr<Clock> real_clock() { return std::make_unique<RealClock>(); }

Seconds FakeClock::now() {
  const std::lock_guard lock(mutex_);
  return now_;
}

std::chrono::system_clock::time_point FakeClock::calendar() {
  const std::chrono::duration<double> since(now().count());
  return std::chrono::system_clock::time_point(std::chrono::seconds(kYear2000) +
                                               std::chrono::round<std::chrono::system_clock::duration>(since));
}

void FakeClock::sleep(Seconds duration) { advance(std::max(duration, Seconds(0.0))); }

void FakeClock::advance(Seconds duration) {
  CHECK(duration >= Seconds(0.0), "a steady clock does not go back");
  const std::lock_guard lock(mutex_);
  now_ += duration;
}

}  // namespace systole
