#pragma once
// Whether the step's thread waits more than it should, for rows or for a checkpoint: told once each, with what to try.
// Where time goes is in the ledger either way; this is for whoever looks on while there is still time to change it.

#include <optional>

#include "describe/spec/run.h"

namespace systole {

class WaitWatch {
 public:
  // After each step, what it took. A note when kStepsInRow steps or more in a row waited for rows for more than half of
  // their time, and for kWorthTelling in all.
  std::optional<Note> after_step(const TimeByCategory& step);

  // After the save of `step` waited for that of `before` to be written. A note once such waits are kWorthTelling in
  // all.
  std::optional<Note> after_save(std::int64_t step, std::int64_t before, Seconds waited);

  static constexpr int kStepsInRow = 5;
  static constexpr Seconds kWorthTelling{1.0};

 private:
  int steps_in_row_ = 0;
  Seconds waited_in_row_, stepped_in_row_;
  Seconds waited_for_saves_;
  bool told_of_rows_ = false, told_of_saves_ = false;
};

}  // namespace systole
