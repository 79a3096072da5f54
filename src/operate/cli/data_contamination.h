#pragma once
// `data show --contamination N [--against FILE...]`: the held-out text, or that of other files, that stands in the
// training text too.

#include <string>
#include <vector>

#include "ground/base/document.h"
#include "operate/cli/workload_options.h"

namespace systole::cli {

struct ContaminationArguments {
  std::int64_t words = 0;  // in a run; 0: not asked
  std::vector<std::string> against;
  std::string field;
};
void add_contamination_arguments(Subcommand command, ContaminationArguments& arguments);

struct ContaminationShown {
  std::string text;
  Node node;
};
// Reads the text. Nothing in `text`: not asked.
ContaminationShown contamination_shown(const ContaminationArguments& arguments, const LoadedWorkload& loaded,
                                       Context& context);

}  // namespace systole::cli
