#include "predict/schedule/player.h"

#include <algorithm>

#include "ground/base/error.h"

namespace systole {
namespace {

// Lists in one vector: list i is members[begins[i], begins[i + 1]).
struct Lists {
  std::vector<std::int32_t> begins, members;
  std::span<const std::int32_t> operator[](std::size_t i) const {
    const auto from = static_cast<std::size_t>(begins[i]), to = static_cast<std::size_t>(begins[i + 1]);
    return std::span(members).subspan(from, to - from);
  }
};

// `pairs`: (list, next member of the list).
template <typename Pairs>
Lists lists_of(std::size_t count, const Pairs& pairs) {
  Lists lists;
  lists.begins.resize(count + 1);
  for (const auto& [list, member] : pairs) ++lists.begins[static_cast<std::size_t>(list) + 1];
  for (std::size_t i = 0; i < count; ++i) lists.begins[i + 1] += lists.begins[i];
  lists.members.resize(static_cast<std::size_t>(lists.begins.back()));
  std::vector<std::int32_t> next(lists.begins.begin(), lists.begins.end() - 1);
  for (const auto& [list, member] : pairs)
    lists.members[static_cast<std::size_t>(next[static_cast<std::size_t>(list)]++)] = member;
  return lists;
}

}  // namespace

SchedulePlayer::SchedulePlayer(const ActionGraph& graph)
    : streams_(static_cast<std::size_t>(graph.devices) * static_cast<std::size_t>(kNumStreams)) {
  const std::size_t count = graph.actions.size(), devices = static_cast<std::size_t>(graph.devices);
  std::vector<std::pair<int, int>> of_devices;
  of_devices.reserve(count);
  for (std::size_t a = 0; a < count; ++a) of_devices.emplace_back(graph.actions[a].device, static_cast<int>(a));
  const Lists actions = lists_of(devices, of_devices), waits = lists_of(count, graph.waits);
  const auto stream_of = [&](std::size_t action) {
    return graph.actions[action].device * kNumStreams + static_cast<int>(graph.actions[action].stream);
  };
  std::vector<std::size_t> next(devices, 0);  // per device: index into its list
  std::vector<bool> placed(count, false);
  steps_.reserve(count);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t d = 0; d < devices; ++d) {
      for (const auto own = actions[d]; next[d] < own.size(); ++next[d], moved = true) {
        const auto action = static_cast<std::size_t>(own[next[d]]);
        const std::span<const std::int32_t> others = waits[action];
        if (!std::ranges::all_of(others, [&](std::int32_t o) { return placed[static_cast<std::size_t>(o)]; })) break;
        const int stream = stream_of(action);
        steps_.push_back(
            {own[next[d]], graph.actions[action].duration, stream, static_cast<std::int32_t>(waits_.size())});
        // Earlier actions of its own stream have ended anyway.
        for (const std::int32_t other : others)
          if (stream_of(static_cast<std::size_t>(other)) != stream) waits_.push_back(other);
        placed[action] = true;
      }
    }
  }
  for (std::size_t d = 0; d < devices; ++d)
    CHECK(next[d] == actions[d].size(), "device {} waits for ever at its action {}", d, next[d]);
}

std::vector<Seconds> SchedulePlayer::ends(std::span<const Seconds> durations) const {
  std::vector<Seconds> ends(steps_.size()), free(streams_);
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    const auto from = static_cast<std::size_t>(step.waits_from);
    const auto to = s + 1 < steps_.size() ? static_cast<std::size_t>(steps_[s + 1].waits_from) : waits_.size();
    Seconds& stream = free[static_cast<std::size_t>(step.stream)];
    Seconds begin = stream;
    for (std::size_t w = from; w < to; ++w) begin = std::max(begin, ends[static_cast<std::size_t>(waits_[w])]);
    stream = begin + durations[static_cast<std::size_t>(step.duration)];
    ends[static_cast<std::size_t>(step.action)] = stream;
  }
  return ends;
}

Seconds SchedulePlayer::time(std::span<const Seconds> durations) const {
  Seconds last;
  for (const Seconds end : ends(durations)) last = std::max(last, end);
  return last;
}

}  // namespace systole
