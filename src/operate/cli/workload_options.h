#pragma once
// The options of commands that take a workload, declared once.

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "operate/cli/command.h"
#include "operate/cli/session.h"

namespace systole::cli {

struct WorkloadArguments {
  std::string path;
  std::string environment;
  std::vector<std::string> sets;
  std::string memory;  // "2GiB"; empty: the workload's, or the machine's
  std::string backend = "cpu";
};

void add_workload_arguments(CLI::App& command, WorkloadArguments& arguments);

// Errors: not_found; invalid, all at once.
Result<Workload> load_workload(const WorkloadArguments& arguments);
Result<PrepareOptions> prepare_options(const WorkloadArguments& arguments, Context& context);

}  // namespace systole::cli
