#include "predict/perf/stages_time.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "describe/graph/collective_call.h"

namespace systole {
namespace {

// Of a function that moves something between stages: to or from which.
struct Moves {
  bool sends;
  std::size_t peer;
};

std::optional<Moves> moves_of(const Graph& graph, std::size_t stage, std::size_t stages) {
  for (const GraphNode& node : graph.nodes()) {
    if (!is_transfer(node)) continue;
    const TransferCall call = transfer_call(graph, node);
    const auto n = static_cast<std::int64_t>(stages), at = static_cast<std::int64_t>(stage);
    return Moves{call.sends, static_cast<std::size_t>(((at + (call.sends ? call.by : -call.by)) % n + n) % n)};
  }
  return std::nullopt;
}

class Player {
 public:
  Player(std::span<const StageOfTime> stages, std::string_view schedule, bool serial) : serial_(serial) {
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const Program& program = *stages[s].program;
      Stage stage{&program.schedule_named(schedule), {}, {}, 0, {}, {}};
      const ScheduleEstimate& estimate = stages[s].estimate->schedule_named(schedule);
      std::map<std::string, Seconds> times;
      for (const auto& [name, time] : estimate.by_function) times[name] = time;
      std::map<int, double> acts;
      for (const Action& action : stage.schedule->actions) ++acts[action.function];
      for (std::size_t f = 0; f < program.functions.size(); ++f) {
        const double count = std::max(1.0, acts[static_cast<int>(f)]);
        stage.times.push_back(times[program.functions[f].name] * (1 / count));
        stage.moves.push_back(moves_of(program.functions[f].graph, s, stages.size()));
      }
      stages_.push_back(std::move(stage));
    }
  }

  Seconds run() {
    Seconds last;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        while (advance(s)) {
          moved = true;
          last = std::max(last, stages_[s].ends.back());
        }
      }
    }
    for (std::size_t s = 0; s < stages_.size(); ++s)
      CHECK(stages_[s].next == stages_[s].schedule->actions.size(), "stage {} waits for ever at action {}", s,
            stages_[s].next);
    return last;
  }

 private:
  struct Stage {
    const Schedule* schedule;
    std::vector<Seconds> times;               // per function, of one action
    std::vector<std::optional<Moves>> moves;  // per function
    std::size_t next;
    std::vector<Seconds> ends;       // per action
    std::map<Stream, Seconds> free;  // of each stream
  };

  // The stage's next action, if what it asks for has been sent.
  bool advance(std::size_t s) {
    Stage& stage = stages_[s];
    if (stage.next == stage.schedule->actions.size()) return false;
    const Action& action = stage.schedule->actions[stage.next];
    const auto f = static_cast<std::size_t>(action.function);
    const std::optional<Moves>& moves = stage.moves[f];
    const Stream stream = serial_ ? Stream::compute : action.stream;
    Seconds start = stage.free[stream];
    for (const int other : action.waits) start = std::max(start, stage.ends[static_cast<std::size_t>(other)]);
    if (moves && !moves->sends) {
      std::deque<Seconds>& sent = sent_[{moves->peer, s}];
      if (sent.empty()) return false;
      start = std::max(start, sent.front());
      sent.pop_front();
    }
    const Seconds end = start + stage.times[f];
    if (moves && moves->sends) sent_[{s, moves->peer}].push_back(end);
    stage.ends.push_back(end);
    stage.free[stream] = end;
    ++stage.next;
    return true;
  }

  const bool serial_;
  std::vector<Stage> stages_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<Seconds>> sent_;  // from one stage to another, not received
};

bool has_transfers(const StageOfTime& stage, const Schedule& schedule) {
  return std::any_of(schedule.actions.begin(), schedule.actions.end(), [&](const Action& action) {
    return moves_of(stage.program->functions[static_cast<std::size_t>(action.function)].graph, 0, 2).has_value();
  });
}

}  // namespace

Seconds time_of_stages(std::span<const StageOfTime> stages, std::string_view schedule, bool serial) {
  return Player(stages, schedule, serial).run();
}

Estimate among_stages(std::span<const StageOfTime> stages, std::size_t stage, bool serial) {
  Estimate result = *stages[stage].estimate;
  for (ScheduleEstimate& schedule : result.schedules) {
    if (!has_transfers(stages[stage], stages[stage].program->schedule_named(schedule.name))) continue;
    const Seconds all = time_of_stages(stages, schedule.name, serial);
    schedule.by_function.emplace_back("stages", std::max(Seconds(), all - schedule.time));
    schedule.time = std::max(schedule.time, all);
  }
  return result;
}

}  // namespace systole
