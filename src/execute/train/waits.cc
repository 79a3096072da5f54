#include "execute/train/waits.h"

namespace systole {

std::optional<Note> WaitWatch::after_step(const TimeByCategory& step) {
  if (told_of_rows_) return std::nullopt;
  const Seconds waited = step[Category::data_wait];
  const Seconds stepped = waited + step[Category::compute] + step[Category::reduce] + step[Category::update];
  if (waited <= stepped * 0.5) {
    steps_in_row_ = 0;
    waited_in_row_ = stepped_in_row_ = Seconds();
    return std::nullopt;
  }
  ++steps_in_row_;
  waited_in_row_ += waited;
  stepped_in_row_ += stepped;
  if (steps_in_row_ < kStepsInRow || waited_in_row_ < kWorthTelling) return std::nullopt;
  told_of_rows_ = true;
  return Note{"warning",
              fmt::format("{} steps in a row waited for rows for {:.0f}% of their time; try a faster disk for "
                          "data.folder, or resources.threads one lower, to leave the reader a core",
                          steps_in_row_, 100 * (waited_in_row_ / stepped_in_row_)),
              "data", waited_in_row_};
}

std::optional<Note> WaitWatch::after_save(std::int64_t step, std::int64_t before, Seconds waited) {
  waited_for_saves_ += waited;
  if (told_of_saves_ || waited_for_saves_ < kWorthTelling) return std::nullopt;
  told_of_saves_ = true;
  return Note{"warning",
              fmt::format("the save of step {} waited for that of step {}, which was still being written; try a longer "
                          "checkpoint.every, or a faster disk for the run's folder",
                          step, before),
              "checkpoint", waited_for_saves_};
}

}  // namespace systole
