#include "predict/schedule/program_actions.h"

#include <algorithm>
#include <map>
#include <optional>

#include "describe/program/collective_call.h"
#include "ground/base/error.h"

namespace systole {
namespace {

// A function's transfer between stages, and the stage at the other end.
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

void add_actions(const Schedule& schedule, int device, int first_duration, bool serial, ActionGraph& graph) {
  const int first = static_cast<int>(graph.actions.size());
  for (const Action& action : schedule.actions) {
    const int own = static_cast<int>(graph.actions.size());
    for (const int other : action.waits) graph.waits.emplace_back(own, first + other);
    graph.actions.push_back({device, serial ? Stream::compute : action.stream, first_duration + action.function});
  }
}

}  // namespace

ActionGraph actions_of(const Schedule& schedule) {
  ActionGraph graph;
  add_actions(schedule, 0, 0, false, graph);
  return graph;
}

ActionGraph actions_of(std::span<const Program* const> stages, std::string_view schedule, bool serial) {
  ActionGraph graph;
  graph.devices = static_cast<int>(stages.size());
  using Ends = std::pair<std::size_t, std::size_t>;  // of a message: sending and receiving stage
  struct Receive {
    Ends ends;
    int action;
    std::size_t stage, at;  // the receiving stage, and the place in its schedule
  };
  std::map<Ends, std::vector<int>> sends;
  std::vector<Receive> receives;
  int first_duration = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Program& program = *stages[s];
    std::vector<std::optional<Moves>> moves;  // per function
    for (const Function& function : program.functions) moves.push_back(moves_of(function.graph, s, stages.size()));
    const Schedule& own = program.schedule_named(schedule);
    const int first = static_cast<int>(graph.actions.size());
    add_actions(own, static_cast<int>(s), first_duration, serial, graph);
    first_duration += static_cast<int>(program.functions.size());
    for (std::size_t a = 0; a < own.actions.size(); ++a) {
      const std::optional<Moves>& move = moves[static_cast<std::size_t>(own.actions[a].function)];
      if (!move) continue;
      const int action = first + static_cast<int>(a);
      if (move->sends) {
        sends[{s, move->peer}].push_back(action);
      } else {
        receives.push_back({{move->peer, s}, action, s, a});
      }
    }
  }
  std::map<Ends, std::size_t> received;
  for (const Receive& receive : receives) {
    const std::vector<int>& sent = sends[receive.ends];
    const std::size_t next = received[receive.ends]++;
    CHECK(next < sent.size(), "stage {} waits for ever at action {}", receive.stage, receive.at);
    graph.waits.emplace_back(receive.action, sent[next]);
  }
  return graph;
}

bool has_transfers(const Program& program, const Schedule& schedule) {
  return std::any_of(schedule.actions.begin(), schedule.actions.end(), [&](const Action& action) {
    return moves_of(program.functions[static_cast<std::size_t>(action.function)].graph, 0, 2).has_value();
  });
}

}  // namespace systole
