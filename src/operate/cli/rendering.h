#pragma once
// The options of commands that render a workload.

#include <string>
#include <vector>

#include "operate/cli/options.h"
#include "operate/run/render_job.h"

namespace systole::cli {

// `targets`: those that the command supports.
void add_render_arguments(Subcommand command, RenderArguments& arguments, const std::vector<std::string>& targets);
// Without --on the target is the plan's. Throws: invalid: there is no plan, or it has none or several.
void settle_target(RenderArguments& arguments, const char* command);
void add_image_arguments(Subcommand command, RenderArguments& arguments);  // for target docker

}  // namespace systole::cli
