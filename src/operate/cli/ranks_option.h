#pragma once
// --ranks of the commands that serve a model: processes that hold it together.

#include <memory>

#include "operate/cli/command.h"
#include "operate/run/serving_ranks.h"

namespace systole::cli {

// Alone, the ranks of this machine; `machines`: with the options for several.
void add_ranks_option(Subcommand command, ServingRanksArguments& ranks, bool machines);

// Starts the other ranks of a model; null: there is one rank.
std::unique_ptr<ServingRanks> start_ranks(const ServingRanksArguments& ranks, const std::string& run,
                                          const RankMachine& machine);

// Refuses what ranks cannot do, by the option's name, if it is given.
void check_without_ranks(const ServingRanksArguments& ranks, bool given, const std::string& option);

}  // namespace systole::cli
