#include "operate/observe/rank_report.h"

#include <algorithm>

#include "operate/observe/rank_files.h"

namespace systole {
namespace {

std::string where(const Flight& flight) {
  const FlightNow& now = flight.now;
  const std::string in = now.site >= 0 ? " in " + flight.sites[static_cast<std::size_t>(now.site)].name : "";
  if (now.awaited >= 0) return fmt::format("waiting for rank {}{} of step {}", now.awaited, in, now.step);
  return fmt::format("{}{} of step {}", doing(now.stage), in, now.step);
}

RankRow row_of(const std::vector<Flight>& flights) {
  RankRow row;
  for (const Flight& flight : flights) {
    row.rank = flight.identity.rank;
    ++row.processes;
    row.steps += flight.steps;
    for (std::size_t s = 0; s < kNumStages; ++s) row.seconds[s] += flight.totals[s];
    row.last = flight.now;
    row.last_seen = flight.has(FlightMark::ended) && flight.failed.empty() ? "" : where(flight);
    row.failed = flight.failed;
    row.sites = flight.sites;
  }
  return row;
}

bool of_steps(RankStage stage) {
  return stage != RankStage::startup && stage != RankStage::compile && stage != RankStage::restore;
}

// Excess over the median of the others, per step; at least a tenth of the step time counts.
void find_slowest(RanksReport& report) {
  Seconds worst;
  for (const RankRow& row : report.ranks) {
    for (int s = 0; s < kNumStages && row.steps > 0; ++s) {
      const auto stage = static_cast<RankStage>(s);
      if (!is_own(stage) || !of_steps(stage)) continue;
      std::vector<Seconds> others;
      Seconds step;
      for (int each = 0; each < kNumStages; ++each) {
        if (of_steps(static_cast<RankStage>(each))) step += row.seconds[static_cast<std::size_t>(each)];
      }
      for (const RankRow& other : report.ranks) {
        if (other.rank != row.rank && other.steps > 0)
          others.push_back(at(other.seconds, stage) * (1.0 / static_cast<double>(other.steps)));
      }
      if (others.empty()) continue;
      const auto middle = others.begin() + static_cast<std::ptrdiff_t>((others.size() - 1) / 2);
      std::nth_element(others.begin(), middle, others.end());
      const double steps = static_cast<double>(row.steps);
      const Seconds beyond = at(row.seconds, stage) * (1.0 / steps) - *middle;
      if (beyond <= worst || beyond < step * (0.1 / steps)) continue;
      worst = beyond;
      report.slowest = row.rank;
      report.slowest_in = stage;
      report.beyond = beyond;
    }
  }
}

std::string cell(Seconds time) { return time < Seconds(0.0005) ? std::string() : fmt::format("{:.3g}", time.count()); }

}  // namespace

std::string goes_on_from(const Recovered& back) {
  if (!back.from_step) return "";
  const std::int64_t lost = back.steps_lost.value_or(0);
  return fmt::format(", {}, {} step{} again",
                     *back.from_step > 0 ? fmt::format("from the checkpoint of step {}", *back.from_step)
                                         : std::string("from the start, as there is no checkpoint"),
                     lost, lost == 1 ? "" : "s");
}

RanksReport ranks_report(const std::vector<std::vector<Flight>>& by_rank, const std::vector<Event>& of_agents) {
  RanksReport report;
  for (const std::vector<Flight>& flights : by_rank) {
    if (!flights.empty()) report.ranks.push_back(row_of(flights));
  }
  for (const Event& event : of_agents) {
    if (const auto* held = std::get_if<StragglerFound>(&event.body)) report.held_up.push_back(*held);
    if (const auto* recovered = std::get_if<Recovered>(&event.body)) report.recovered.push_back(*recovered);
  }
  find_slowest(report);
  return report;
}

Result<RanksReport> report_ranks(Store& store, const std::string& dir) {
  std::vector<std::vector<Flight>> by_rank;
  for (const std::int64_t rank : TRY(list_ranks(store, dir))) by_rank.push_back(TRY(read_flights(store, dir, rank)));
  return ranks_report(by_rank, TRY(read_agent_events(store, dir)));
}

std::string to_text(const RanksReport& r) {
  if (r.ranks.size() < 2) return "";
  std::vector<RankStage> stages;
  for (int s = 0; s < kNumStages; ++s) {
    const auto stage = static_cast<RankStage>(s);
    const bool any = std::any_of(r.ranks.begin(), r.ranks.end(),
                                 [&](const RankRow& row) { return at(row.seconds, stage) >= Seconds(0.0005); });
    if (any) stages.push_back(stage);
  }
  std::string text = "\nseconds by rank     ";
  for (const RankRow& row : r.ranks) text += fmt::format("{:>9}", fmt::format("rank {}", row.rank));
  text += "\n";
  for (const RankStage stage : stages) {
    text += fmt::format("{:<20}", name_of(stage));
    for (const RankRow& row : r.ranks) text += fmt::format("{:>9}", cell(at(row.seconds, stage)));
    text += "\n";
  }
  text += fmt::format("{:<20}", "steps");
  for (const RankRow& row : r.ranks) text += fmt::format("{:>9}", row.steps);
  text += "\n";
  if (r.slowest >= 0) {
    text += fmt::format("rank {} held the others up in {}: {} a step more than they take\n", r.slowest,
                        name_of(r.slowest_in), to_string(r.beyond));
  }
  for (const StragglerFound& held : r.held_up) text += held.text + "\n";
  for (const Recovered& back : r.recovered) {
    text += fmt::format(
        "generation {}, after {}: {} to the next step{}: detected {}, ended {}, restarted {}, restored {}, "
        "first step {}\n",
        back.generation, back.cause, to_string(back.total()), goes_on_from(back), to_string(back.detected),
        to_string(back.ended), to_string(back.restarted), to_string(back.restored), to_string(back.stepped));
  }
  for (const RankRow& row : r.ranks) {
    if (!row.last_seen.empty()) text += fmt::format("rank {} was last seen {}\n", row.rank, row.last_seen);
    if (!row.failed.empty()) text += fmt::format("rank {} ended: {}\n", row.rank, row.failed);
  }
  return text;
}

Node to_node(const RanksReport& r) {
  Node rows = Node::sequence();
  for (const RankRow& row : r.ranks) {
    Node seconds = Node::map(), sites = Node::sequence();
    for (int s = 0; s < kNumStages; ++s)
      seconds.set(name_of(static_cast<RankStage>(s)), row.seconds[static_cast<std::size_t>(s)].count());
    for (const FlightSite& site : row.sites) {
      sites.push(Node::map({{"collective", site.name},
                            {"runs", site.runs},
                            {"waited_s", site.waited.count()},
                            {"transfer_s", site.transfer.count()},
                            {"longest_wait_s", site.longest.count()}}));
    }
    rows.push(Node::map({{"rank", row.rank},
                         {"processes", row.processes},
                         {"steps", row.steps},
                         {"seconds", seconds},
                         {"last_seen", row.last_seen},
                         {"failed", row.failed},
                         {"collectives", sites}}));
  }
  Node held = Node::sequence(), recovered = Node::sequence();
  for (const StragglerFound& h : r.held_up) {
    held.push(Node::map({{"kind", h.kind},
                         {"rank", h.rank},
                         {"stage", h.stage},
                         {"step", h.step},
                         {"took_s", h.took.count()},
                         {"usual_s", h.usual.count()},
                         {"collective", h.collective},
                         {"text", h.text}}));
  }
  for (const Recovered& back : r.recovered) {
    Node row = Node::map({{"generation", back.generation},
                          {"cause", back.cause},
                          {"detected_s", back.detected.count()},
                          {"ended_s", back.ended.count()},
                          {"restarted_s", back.restarted.count()},
                          {"restored_s", back.restored.count()},
                          {"stepped_s", back.stepped.count()}});
    if (back.from_step) row.set("from_step", *back.from_step);
    if (back.steps_lost) row.set("steps_lost", *back.steps_lost);
    recovered.push(std::move(row));
  }
  Node report = Node::map();
  report.set("ranks", std::move(rows));
  if (r.slowest >= 0) {
    report.set("slowest", Node::map({{"rank", r.slowest},
                                     {"stage", name_of(r.slowest_in)},
                                     {"beyond_others_s_of_a_step", r.beyond.count()}}));
  }
  report.set("held_up", std::move(held));
  report.set("recovered", std::move(recovered));
  return report;
}

}  // namespace systole
