#pragma once
// Connects a run's messages to the command line.

#include "operate/cli/command.h"
#include "operate/cli/progress_lines.h"
#include "operate/run/run_here.h"
#include "operate/run/run_places.h"
#include "operate/runs/submitted_runs.h"

namespace systole::cli {

// All borrow `context`.
RunScene scene_of(Context& context);
RunScene scene_of(Context& context, Clock& clock);                                       // with another clock
FollowScene follow_scene_of(Context& context, const std::string& folder = kRunsFolder);  // folder of runs

// All borrow `lines`.
RunViewers viewers_of(ProgressLines& lines);

}  // namespace systole::cli
