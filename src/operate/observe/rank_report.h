#pragma once
// What `why` says of many ranks: the waterfall of each, which of them held the others up and in what, and what each
// recovery took.

#include <string>
#include <vector>

#include "describe/spec/flight.h"
#include "describe/spec/run.h"
#include "ground/base/document.h"
#include "ground/store/store.h"

namespace systole {

struct RankRow {
  std::int64_t rank = 0, processes = 0, steps = 0;
  StageTimes seconds{};   // of all its processes
  FlightNow last;         // of the newest
  std::string last_seen;  // "in forward of step 12", "waiting for rank 2 in all_reduce f32[64] over data of step 12"
  std::string failed;
  std::vector<FlightSite> sites;  // of the newest
};

struct RanksReport {
  std::vector<RankRow> ranks;
  // Over the whole run: who spent more than the others on its own work. None when nobody stands out.
  std::int64_t slowest = -1;
  RankStage slowest_in = RankStage::other;
  Seconds beyond;  // the others, a step
  std::vector<HeldUp> held_up;
  std::vector<Recovered> recovered;
  bool empty() const { return ranks.empty(); }
};

// Of a run's folder; empty for one rank. Errors: io, corrupt.
Result<RanksReport> report_ranks(Store& store, const std::string& dir);
RanksReport ranks_report(const std::vector<std::vector<Flight>>& by_rank, const std::vector<Event>& of_agents);

// ", from the checkpoint of step 100, 12 steps again"; empty where that is not known.
std::string goes_on_from(const Recovered& back);
std::string to_text(const RanksReport& report);
Node to_node(const RanksReport& report);

}  // namespace systole
