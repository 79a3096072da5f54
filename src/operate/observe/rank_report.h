#pragma once
// The part of `why` about several ranks: a waterfall for each, the straggler and its stage, and how long each recovery
// took.

#include <string>
#include <vector>

#include "describe/spec/flight.h"
#include "describe/spec/run.h"
#include "ground/base/document.h"
#include "ground/store/store.h"

namespace systole {

struct RankRow {
  std::int64_t rank = 0, processes = 0, steps = 0;
  StageTimes seconds{};   // total of all its processes
  FlightNow last;         // of its newest process
  std::string last_seen;  // "in forward of step 12", "waiting for rank 2 in all_reduce f32[64] over data of step 12"
  std::string failed;
  std::vector<FlightSite> sites;  // of its newest process
};

struct RanksReport {
  std::vector<RankRow> ranks;
  // The rank that spent more than the others on its own work, over the whole run. -1: no rank stands out.
  std::int64_t slowest = -1;
  RankStage slowest_in = RankStage::other;
  Seconds beyond;  // excess over the others, per step
  std::vector<StragglerFound> held_up;
  std::vector<Recovered> recovered;
  bool empty() const { return ranks.empty(); }
};

// For a run's folder; empty with one rank. Errors: io, corrupt.
Result<RanksReport> report_ranks(Store& store, const std::string& dir);
RanksReport ranks_report(const std::vector<std::vector<Flight>>& by_rank, const std::vector<Event>& of_agents);

// ", from the checkpoint of step 100, 12 steps again"; empty if unknown.
std::string goes_on_from(const Recovered& back);
std::string to_text(const RanksReport& report);
Node to_node(const RanksReport& report);

}  // namespace systole
