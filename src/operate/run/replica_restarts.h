#pragma once
// When a server that has ended is started again: after 1, 2, 4, 8 and 16 s, then no more. One that has served for a
// minute begins anew with 1 s.

#include <optional>

#include "ground/base/units.h"

namespace systole {

class ReplicaRestarts {
 public:
  static constexpr int kMost = 5;  // in a row
  static constexpr Seconds kServesWell{60.0};

  // It has ended after serving so long. The time to wait; nothing: it is given up.
  std::optional<Seconds> after(Seconds served) {
    if (served >= kServesWell) in_a_row_ = 0;
    if (in_a_row_ == kMost) return {};
    return Seconds(static_cast<double>(1 << in_a_row_++));
  }

 private:
  int in_a_row_ = 0;
};

}  // namespace systole
