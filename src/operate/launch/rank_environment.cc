#include "operate/launch/rank_environment.h"

#include <cstdlib>

#include "ground/base/number_from.h"

namespace systole {
namespace {

struct PlaceVariable {
  const char* name;
  int RankPlace::*field;
};
constexpr PlaceVariable kPlace[] = {
    {"SYSTOLE_RANK", &RankPlace::rank},
    {"SYSTOLE_NUM_RANKS", &RankPlace::num_ranks},
    {"SYSTOLE_LOCAL_RANK", &RankPlace::local_rank},
    {"SYSTOLE_LOCAL_RANKS", &RankPlace::local_ranks},
    {"SYSTOLE_NODE", &RankPlace::node},
    {"SYSTOLE_NUM_NODES", &RankPlace::num_nodes},
};

Result<std::string> variable(const char* name) {
  if (const char* value = std::getenv(name)) return std::string(value);
  return error(ErrorKind::invalid, "a rank needs {} in its environment", name)
      .hinted("ranks are started by systole run --ranks N");
}

template <typename T>
Result<T> number(const char* name) {
  const std::string text = TRY(variable(name));
  if (const std::optional<T> value = number_from<T>(text); value && *value >= T{}) return *value;
  return error(ErrorKind::invalid, "{} is '{}', no number", name, text);
}

}  // namespace

Environment systole_environment(const RankIdentity& identity) {
  Environment variables;
  for (const PlaceVariable& v : kPlace) variables.emplace_back(v.name, std::to_string(identity.place.*v.field));
  variables.emplace_back("SYSTOLE_GENERATION", std::to_string(identity.place.generation));
  variables.emplace_back("SYSTOLE_RENDEZVOUS", to_string(identity.rendezvous));
  variables.emplace_back("SYSTOLE_TOKEN", identity.token.hex());
  variables.emplace_back("SYSTOLE_RUN", identity.run);
  variables.emplace_back("SYSTOLE_WORKLOAD", identity.workload);
  variables.emplace_back("SYSTOLE_HOST", identity.host);
  variables.emplace_back("SYSTOLE_TLS", identity.tls ? "1" : "0");
  return variables;
}

Result<RankIdentity> rank_identity_from_environment() {
  RankIdentity identity;
  for (const PlaceVariable& v : kPlace) identity.place.*v.field = TRY(number<int>(v.name));
  identity.place.generation = TRY(number<std::uint64_t>("SYSTOLE_GENERATION"));
  identity.rendezvous = TRY(parse_address(TRY(variable("SYSTOLE_RENDEZVOUS"))));
  identity.token = TRY(RunToken::parse(TRY(variable("SYSTOLE_TOKEN"))));
  identity.run = TRY(variable("SYSTOLE_RUN"));
  identity.workload = TRY(variable("SYSTOLE_WORKLOAD"));
  identity.host = TRY(variable("SYSTOLE_HOST"));
  identity.tls = TRY(number<int>("SYSTOLE_TLS")) != 0;
  const RankPlace& p = identity.place;
  if (p.rank >= p.num_ranks || p.local_rank >= p.local_ranks || p.node >= p.num_nodes) {
    return error(ErrorKind::invalid, "rank {} of {}, {} of {} on node {} of {}: no such place", p.rank, p.num_ranks,
                 p.local_rank, p.local_ranks, p.node, p.num_nodes);
  }
  return identity;
}

Environment torchrun_environment(const RankIdentity& identity, const ForeignPlaces& places) {
  const RankPlace& p = identity.place;
  const auto text = [](auto n) { return std::to_string(n); };
  Environment variables = {
      {"RANK", text(p.rank)},
      {"WORLD_SIZE", text(p.num_ranks)},
      {"LOCAL_RANK", text(p.local_rank)},
      {"LOCAL_WORLD_SIZE", text(p.local_ranks)},
      {"GROUP_RANK", text(p.node)},
      {"GROUP_WORLD_SIZE", text(p.num_nodes)},
      {"ROLE_NAME", "default"},
      {"ROLE_RANK", text(p.rank)},
      {"ROLE_WORLD_SIZE", text(p.num_ranks)},
      {"MASTER_ADDR", places.master.host},
      {"MASTER_PORT", text(places.master.port)},
      {"TORCHELASTIC_RESTART_COUNT", text(p.generation - 1)},
      {"TORCHELASTIC_MAX_RESTARTS", text(places.max_restarts)},
      {"TORCHELASTIC_RUN_ID", identity.run},
      // Rank 0 creates PyTorch's store; the agent has none.
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
  };
  // Like torchrun: otherwise every rank uses all cores.
  if (p.local_ranks > 1 && std::getenv("OMP_NUM_THREADS") == nullptr) variables.emplace_back("OMP_NUM_THREADS", "1");
  return variables;
}

Environment jax_environment(const RankIdentity& identity, const ForeignPlaces& places) {
  return {
      {"JAX_COORDINATOR_ADDRESS", to_string(places.coordinator)},
      {"JAX_COORDINATOR_PORT", std::to_string(places.coordinator.port)},
      {"JAX_NUM_PROCESSES", std::to_string(identity.place.num_ranks)},
      {"JAX_PROCESS_ID", std::to_string(identity.place.rank)},
  };
}

}  // namespace systole
