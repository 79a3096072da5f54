#include "operate/launch/node_work.h"

#include <algorithm>

namespace systole {

RankPlace place_of(const LaunchPlan& plan, int rank) {
  RankPlace place;
  const std::string& node = plan.ranks[static_cast<std::size_t>(rank)].node;
  place.generation = plan.generation;
  place.rank = rank;
  place.num_ranks = static_cast<int>(plan.ranks.size());
  place.local_ranks = 0;
  std::vector<std::string> nodes;
  for (int r = 0; r < place.num_ranks; ++r) {
    const std::string& here = plan.ranks[static_cast<std::size_t>(r)].node;
    if (std::find(nodes.begin(), nodes.end(), here) == nodes.end()) nodes.push_back(here);
    if (here != node) continue;
    ++place.local_ranks;
    place.local_rank += r < rank ? 1 : 0;
  }
  place.num_nodes = static_cast<int>(nodes.size());
  place.node = static_cast<int>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
  return place;
}

Result<NodeWork> NodeWork::make(const LaunchOptions& options, NetAddress rendezvous, RunToken token) {
  std::unique_ptr<LocalRanks> ranks = TRY(LocalRanks::make(options.log_folder, options.line));
  return NodeWork(options, std::move(rendezvous), token, std::move(ranks));
}

Status NodeWork::apply(const LaunchPlan& plan, RendezvousClient& client) {
  switch (plan.order) {
    case LaunchPlan::Order::run: return start(plan, client);
    case LaunchPlan::Order::stop:
      if (ranks_->generation() == plan.generation) ranks_->signal(plan.signal);
      return Done{};
    case LaunchPlan::Order::kill:
    case LaunchPlan::Order::end: ranks_->kill(); return Done{};
  }
  return Done{};
}

// The node of rank 0 chooses the ports on which rank 0 of a user's program listens, and publishes them.
Result<ForeignPlaces> NodeWork::agree_on_ports(const LaunchPlan& plan, RendezvousClient& client) const {
  ForeignPlaces places;
  places.max_restarts = options_->membership.restarts_per_hour;
  const std::string key = ports_key(plan.generation);
  if (plan.ranks.front().node == options_->node) {
    const int master = TRY(free_port(options_->host)), coordinator = TRY(free_port(options_->host));
    TRY(client.set(
        key, fmt::format("{}:{}", options_->host, master) + "\n" + fmt::format("{}:{}", options_->host, coordinator)));
    places.master = {options_->host, master};
    places.coordinator = {options_->host, coordinator};
    return places;
  }
  const std::string told = TRY(client.wait(key, Seconds(30.0)));
  const std::size_t end = told.find('\n');
  if (end == std::string::npos) return error(ErrorKind::corrupt, "the rendezvous holds no ports");
  places.master = TRY(parse_address(std::string_view(told).substr(0, end)));
  places.coordinator = TRY(parse_address(std::string_view(told).substr(end + 1)));
  return places;
}

Environment NodeWork::environment_of(const RankPlace& place, const ForeignPlaces& places) const {
  const RankIdentity identity{place,          rendezvous_,  token_, options_->run, options_->workload,
                              options_->host, options_->tls};
  Environment variables = systole_environment(identity);
  if (options_->membership.own_ranks) return variables;
  for (auto& [name, value] : variables) {  // a user's program does not use them
    if (name == "SYSTOLE_TOKEN" || name == "SYSTOLE_RENDEZVOUS" || name == "SYSTOLE_TLS") value.reset();
  }
  for (const Environment& more : {torchrun_environment(identity, places), jax_environment(identity, places)}) {
    variables.insert(variables.end(), more.begin(), more.end());
  }
  return variables;
}

Status NodeWork::start(const LaunchPlan& plan, RendezvousClient& client) {
  const bool ours = std::any_of(plan.ranks.begin(), plan.ranks.end(),
                                [&](const RankSlot& slot) { return slot.node == options_->node; });
  if (!ours) return Done{};
  end();  // ends any earlier generation
  ForeignPlaces places;
  if (!options_->membership.own_ranks) places = TRY(agree_on_ports(plan, client));
  for (int rank = 0; rank < static_cast<int>(plan.ranks.size()); ++rank) {
    if (plan.ranks[static_cast<std::size_t>(rank)].node != options_->node) continue;
    Command command = options_->command;
    for (auto& entry : environment_of(place_of(plan, rank), places)) command.env.push_back(std::move(entry));
    TRY(ranks_->start(plan.generation, rank, std::move(command)));
  }
  return Done{};
}

void NodeWork::end() {
  ranks_->kill();
  while (!ranks_->empty()) (void)ranks_->poll(Seconds(0.01));
}

}  // namespace systole
