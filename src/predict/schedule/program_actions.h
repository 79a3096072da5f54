#pragma once
// Converts schedules of Programs for the player: of one device, or of all pipeline stages with their messages.

#include <span>
#include <string_view>

#include "describe/program/program.h"
#include "predict/schedule/player.h"

namespace systole {

// One device by itself. Duration f is that of one action of function f.
ActionGraph actions_of(const Schedule& schedule);

// All stages, one device of each. Durations are those of one action of each function: of stage 0, then of stage 1, …
// Between two stages, sends match receives in order; a receive begins when its send has ended. `serial`: a device runs
// one action at a time, whatever its streams.
// REQUIRES: the stages are in the order of the axis; their other coordinates are equal.
// Errors: Failure(internal) when a receive has no send.
ActionGraph actions_of(std::span<const Program* const> stages, std::string_view schedule, bool serial);

// True if the schedule sends to other stages or receives from them.
bool has_transfers(const Program& program, const Schedule& schedule);

}  // namespace systole
