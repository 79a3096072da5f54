#pragma once
// For tests of what other processes do.

#include <chrono>
#include <functional>
#include <thread>

namespace systole {

// Waits until `until` is true, and says whether it became so in that time.
inline bool waits(const std::function<bool()>& until, double seconds = 60) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!until()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

}  // namespace systole
