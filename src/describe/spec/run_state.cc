#include "describe/spec/run_state.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ground/base/exit_code.h"

namespace systole {
namespace {

constexpr std::array kStates = {
    RunStateText{RunState::queued, "queued", "Waits for its machines; the reason is the cluster's."},
    RunStateText{RunState::starting, "starting", "Has its machines, and its ranks do not run yet."},
    RunStateText{RunState::running, "running", "Its ranks run."},
    RunStateText{RunState::saving, "saving", "Was asked to stop, or gives its machines back."},
    RunStateText{RunState::preempted, "preempted",
                 "Lost its machines and waits for others; goes on from its newest checkpoint."},
    RunStateText{RunState::finished, "finished", "Over: it did all its steps."},
    RunStateText{RunState::stopped, "stopped", "Over, because somebody asked; `systole resume` goes on."},
    RunStateText{RunState::budget_used, "budget_used",
                 "Over, because its budget is used; `systole resume RUN --set objective.budget=DOLLARS` goes on."},
    RunStateText{RunState::diverged, "diverged", "Over, because its loss rose, or it or the gradient was no number."},
    RunStateText{
        RunState::failed, "failed",
        "Over, by an error or for want of retries; the reason has the error, or the exit code of a cluster's."},
    RunStateText{RunState::killed, "killed", "Over: its last process recorded no end, and none holds its folder."},
    RunStateText{RunState::damaged, "damaged", "Its files do not read; a warning says which."},
    RunStateText{
        RunState::unknown, "unknown",
        "Nobody can say: its folder may not be looked into, or its cluster forgot it and it recorded no end."}};

constexpr std::pair<std::string_view, RunState> kReasons[] = {{"finished", RunState::finished},
                                                              {"signal", RunState::stopped},
                                                              {"budget", RunState::budget_used},
                                                              {"diverged", RunState::diverged},
                                                              {"error", RunState::failed}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kStates.size(); ++i)
    if (static_cast<std::size_t>(kStates[i].state) != i) return false;
  return true;
}
static_assert(in_order());

}  // namespace

std::span<const RunStateText> run_states() { return kStates; }

const char* name_of(RunState state) { return kStates[static_cast<std::size_t>(state)].name; }

std::optional<RunState> run_state_named(std::string_view name) {
  const auto found =
      std::ranges::find(kStates, name, [](const RunStateText& one) { return std::string_view(one.name); });
  if (found == kStates.end()) return std::nullopt;
  return found->state;
}

bool is_over(RunState state) {
  switch (state) {
    case RunState::finished:
    case RunState::stopped:
    case RunState::budget_used:
    case RunState::diverged:
    case RunState::failed:
    case RunState::killed: return true;
    case RunState::queued:
    case RunState::starting:
    case RunState::running:
    case RunState::saving:
    case RunState::preempted:
    case RunState::damaged:
    case RunState::unknown: return false;
  }
  return false;
}

RunState state_of(const Stopped& stopped) {
  for (const auto& [reason, state] : kReasons)
    if (reason == stopped.reason) return state;
  return RunState::failed;
}

RunState state_of(const std::vector<Event>& process) {
  for (const Event& event : process)
    if (const auto* stopped = std::get_if<Stopped>(&event.body)) return state_of(*stopped);
  return RunState::running;
}

RunState state_with(RunState told, std::optional<bool> held) {
  if (told != RunState::running) return told;
  return !held ? RunState::unknown : *held ? RunState::running : RunState::killed;
}

RunState state_of_exit(std::int64_t code, bool asked) {
  if (code == kExitDone) return RunState::finished;
  if (code == kExitOverBudget) return RunState::budget_used;
  return asked ? RunState::stopped : RunState::failed;
}

}  // namespace systole
