#pragma once
// Work done, as kernels report it from the dimensions and pointers that they receive. It is checked against the Work of
// the Program: the law plan-is-run.

#include <algorithm>
#include <cstdint>

#include "ground/base/units.h"

namespace systole {

struct WorkCounters {
  std::int64_t calls = 0;
  std::int64_t flops = 0;
  std::int64_t transcendentals = 0;
  std::int64_t skipped_flops = 0;  // skipped because of data (masked blocks); planned = done + skipped
  std::int64_t skipped_transcendentals = 0;
  std::int64_t bytes_read = 0;  // distinct operands of each kernel call
  std::int64_t bytes_written = 0;
  std::int64_t bytes_sent = 0;  // by transports
  std::int64_t high_water = 0;  // end of the highest byte that a kernel may touch

  WorkCounters& operator+=(const WorkCounters& other) {
    calls += other.calls;
    flops += other.flops;
    transcendentals += other.transcendentals;
    skipped_flops += other.skipped_flops;
    skipped_transcendentals += other.skipped_transcendentals;
    bytes_read += other.bytes_read;
    bytes_written += other.bytes_written;
    bytes_sent += other.bytes_sent;
    high_water = std::max(high_water, other.high_water);
    return *this;
  }
  bool operator==(const WorkCounters&) const = default;
};

}  // namespace systole
