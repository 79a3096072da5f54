#include "describe/program/order.h"

#include <algorithm>

namespace systole {

ActionOrder::ActionOrder(const Schedule& schedule) {
  const int count = static_cast<int>(schedule.actions.size());
  std::array<int, kNumStreams> last;  // the latest action of each stream
  last.fill(-1);
  Clock ranks{};
  for (int a = 0; a < count; ++a) {
    const Action& action = schedule.actions[static_cast<std::size_t>(a)];
    const auto s = static_cast<std::size_t>(action.stream);
    Clock clock{};
    const auto after = [&](int b) {
      const auto at = static_cast<std::size_t>(b);
      for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], begins_[at][i]);
      int& ended = clock[static_cast<std::size_t>(stream_[at])];
      ended = std::max(ended, rank_[at] + 1);
    };
    for (const int b : action.waits) {
      if (b < 0 || b >= a) {
        fail(error(ErrorKind::invalid, "schedule {}, action {}: waits for action {}, which does not come before it",
                   schedule.name, a, b));
      }
      after(b);
    }
    if (last[s] >= 0) after(last[s]);
    last[s] = a;
    begins_.push_back(clock);
    stream_.push_back(static_cast<int>(s));
    rank_.push_back(ranks[s]++);
  }

  // behind[p]: the minimum of the clocks of all actions from place p on.
  std::vector<Clock> behind(static_cast<std::size_t>(count) + 1);
  behind.back().fill(count);
  for (std::size_t p = static_cast<std::size_t>(count); p-- > 0;) {
    for (std::size_t s = 0; s < kNumStreams; ++s) behind[p][s] = std::min(behind[p + 1][s], begins_[p][s]);
  }
  for (std::size_t a = 0; a < static_cast<std::size_t>(count); ++a) {
    const auto s = static_cast<std::size_t>(stream_[a]);
    const auto released =
        std::partition_point(behind.begin(), behind.end(), [&](const Clock& clock) { return clock[s] <= rank_[a]; });
    release_.push_back(static_cast<int>(released - behind.begin()));
  }
}

bool ActionOrder::before(int a, int b) const {
  const auto at = static_cast<std::size_t>(a);
  return begins_[static_cast<std::size_t>(b)][static_cast<std::size_t>(stream_[at])] > rank_[at];
}

}  // namespace systole
