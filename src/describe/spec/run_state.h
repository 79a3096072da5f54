#pragma once
// The states of a run, local or on a cluster, as lists, `why`, the index and JSON show them. A process reports its end
// by its `stopped` event (run.h) and its exit code (ground/base/exit_code.h). A cluster reports states of its own; each
// target maps them to these.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "describe/spec/run.h"

namespace systole {

enum class RunState : std::uint8_t {
  queued,
  starting,
  running,
  saving,
  preempted,
  finished,
  stopped,
  budget_used,
  diverged,
  failed,
  killed,
  damaged,
  unknown,
};

struct RunStateText {
  RunState state;
  const char *name, *meaning;  // "budget_used"; a sentence for people
};
std::span<const RunStateText> run_states();  // in the enum's order

const char* name_of(RunState state);
std::optional<RunState> run_state_named(std::string_view name);
// No process of the run is alive, and none starts without `resume`. False for a damaged or unknown run.
bool is_over(RunState state);

// Maps `stopped`.reason to a state: "signal" is stopped, "budget" is budget_used, "error" is failed, and so is a reason
// that this version does not know.
RunState state_of(const Stopped& stopped);
// `process`: events of the process that opened the run last. Running if it reported no end.
RunState state_of(const std::vector<Event>& process);

// A run whose last process reported no end is running while its folder is locked (`held`); else that process was
// killed. `held`: nothing where the lock cannot be checked.
RunState state_with(RunState told, std::optional<bool> held);

// From the exit code of its ranks. `asked`: a stop was requested.
RunState state_of_exit(std::int64_t code, bool asked);

}  // namespace systole
