#pragma once
// What lies in a run's folder of each of many ranks, and of their agent:
//
//   ranks/3/events/000.jsonl   what happened on rank 3; rank 0's are the run's own, in events/
//   ranks/3/flight/000.log     where rank 3 was and what its time went to (describe/spec/flight.h), a file a process
//   ranks/agent/events/        which ranks held others up, and what each recovery took
//   ranks/logs/                what ranks printed

#include <string>
#include <vector>

#include "describe/spec/flight.h"
#include "describe/spec/run.h"
#include "ground/store/store.h"

namespace systole {

inline const std::string kRanksFolder = "ranks", kAgentFolder = "ranks/agent";
std::string rank_folder(std::int64_t rank);

// "ranks/3/flight/002.log": the next process's, its folder made. Errors: io, no_space.
Result<std::string> next_flight_file(Store& run, std::int64_t rank);
// The flight logs of a rank, oldest first; those that cannot be read are left out: their process has just begun.
Result<std::vector<Flight>> read_flights(Store& run, const std::string& dir, std::int64_t rank);
// Ranks that have any, in order. Errors: io.
Result<std::vector<std::int64_t>> list_ranks(Store& run, const std::string& dir);
// Of the agents, in the order in which they opened. Errors: as parse_events.
Result<std::vector<Event>> read_agent_events(Store& run, const std::string& dir);

}  // namespace systole
