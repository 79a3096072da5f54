#pragma once
// The environment of a rank. Our ranks read SYSTOLE_...; a user's program gets the variables of torchrun
// (https://docs.pytorch.org/docs/stable/elastic/run.html, "Environment Variables") and of jax.distributed, so a script
// written for either runs unchanged.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/result.h"
#include "ground/net/socket.h"
#include "ground/net/token.h"

namespace systole {

// One rank's place in its generation.
struct RankPlace {
  std::uint64_t generation = 0;
  int rank = 0, num_ranks = 1;
  int local_rank = 0, local_ranks = 1;  // on its node
  int node = 0, num_nodes = 1;
};

struct RankIdentity {
  RankPlace place;
  NetAddress rendezvous;
  RunToken token;
  std::string run;                 // the run's id
  std::string workload;            // hash; ranks with a different one are refused
  std::string host = "127.0.0.1";  // of its node, for ranks of other nodes
  bool tls = false;                // uses TLS to the rendezvous and to ranks of other nodes
};

using Environment = std::vector<std::pair<std::string, std::optional<std::string>>>;

// SYSTOLE_RANK, SYSTOLE_NUM_RANKS, ...: all fields of RankIdentity.
Environment systole_environment(const RankIdentity& identity);
// Reads them back, from this process's environment. Errors: invalid (a variable is missing or not a number; says
// which).
Result<RankIdentity> rank_identity_from_environment();

// For a user's program. `master`: where rank 0 listens for PyTorch; `coordinator`: the same for JAX.
struct ForeignPlaces {
  NetAddress master, coordinator;
  int max_restarts = 0;
};
Environment torchrun_environment(const RankIdentity& identity, const ForeignPlaces& places);
Environment jax_environment(const RankIdentity& identity, const ForeignPlaces& places);

}  // namespace systole
