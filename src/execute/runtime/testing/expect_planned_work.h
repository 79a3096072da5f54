#pragma once
// For tests: expects that the counted work of a function's calls equals its planned work, as integers.

#include <gtest/gtest.h>

#include "describe/ir/op.h"
#include "execute/runtime/counters.h"

namespace systole {

// `before`: the counters when the calls began.
inline void expect_planned_work(const Work& planned, const WorkCounters& counted, const WorkCounters& before = {}) {
  EXPECT_EQ(counted.flops + counted.skipped_flops - before.flops - before.skipped_flops, planned.flops);
  EXPECT_EQ(counted.transcendentals + counted.skipped_transcendentals - before.transcendentals -
                before.skipped_transcendentals,
            planned.transcendentals);
  EXPECT_EQ(counted.bytes_read - before.bytes_read, planned.read.count());
  EXPECT_EQ(counted.bytes_written - before.bytes_written, planned.written.count());
}

}  // namespace systole
