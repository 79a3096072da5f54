#pragma once
// Warns if the step's thread waits too long for rows or for a checkpoint: once each, with a remedy. The ledger accounts
// for the time either way; this warns while there is time to change it.

#include <optional>

#include "describe/spec/run.h"

namespace systole {

class WaitWatch {
 public:
  // Call after each step, with its times. A note after kStepsInRow consecutive steps that waited for rows for more than
  // half of their time, if these waits total kWorthTelling.
  std::optional<Note> after_step(const TimeByCategory& step);

  // Call after the save of `step` waited for the save of `before`. A note once such waits total kWorthTelling.
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
