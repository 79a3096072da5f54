#pragma once
// Files of each rank, and of the agents, in a run's folder:
//
//   ranks/3/events/000.jsonl   events of rank 3; rank 0's are the run's own, in events/
//   ranks/3/flight/000.log     stage and time use of rank 3 (describe/spec/flight.h), one file per process
//   ranks/agent/events/        stragglers, and how long each recovery took
//   ranks/logs/                output of ranks

#include <string>
#include <vector>

#include "describe/spec/flight.h"
#include "describe/spec/run.h"
#include "ground/store/store.h"

namespace systole {

inline const std::string kRanksFolder = "ranks", kAgentFolder = "ranks/agent";
std::string rank_folder(std::int64_t rank);

// "ranks/3/flight/002.log": the file of the next process; creates its folder. Errors: io, no_space.
Result<std::string> next_flight_file(Store& run, std::int64_t rank);
// The flight logs of a rank, oldest first. Skips unreadable ones: their process has just begun.
Result<std::vector<Flight>> read_flights(Store& run, const std::string& dir, std::int64_t rank);
// Ranks that have files, sorted. Errors: io.
Result<std::vector<std::int64_t>> list_ranks(Store& run, const std::string& dir);
// Events of the agents, in the order in which they opened. Errors: as parse_events.
Result<std::vector<Event>> read_agent_events(Store& run, const std::string& dir);

}  // namespace systole
