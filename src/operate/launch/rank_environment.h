#pragma once
// What a rank finds in its environment. Ours read SYSTOLE_...; a user's program finds what torchrun
// (https://docs.pytorch.org/docs/stable/elastic/run.html, "Environment Variables") and jax.distributed give, so that a
// script written for either runs unchanged.

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
  int local_rank = 0, local_ranks = 1;  // of those on its node
  int node = 0, num_nodes = 1;
};

struct RankIdentity {
  RankPlace place;
  NetAddress rendezvous;
  RunToken token;
  std::string run;                 // its id
  std::string workload;            // hash; ranks with another one are refused
  std::string host = "127.0.0.1";  // of its node, where ranks of others reach it
  bool tls = false;                // it speaks so to the rendezvous and to ranks of other nodes
};

using Environment = std::vector<std::pair<std::string, std::optional<std::string>>>;

// SYSTOLE_RANK, SYSTOLE_NUM_RANKS, ...: all of RankIdentity.
Environment systole_environment(const RankIdentity& identity);
// Reads them back, from this process's environment. Errors: invalid (one is missing or no number; says which).
Result<RankIdentity> rank_identity_from_environment();

// Of a user's program. `master` is where rank 0 is to listen for PyTorch, `coordinator` the same for JAX.
struct ForeignPlaces {
  NetAddress master, coordinator;
  int max_restarts = 0;
};
Environment torchrun_environment(const RankIdentity& identity, const ForeignPlaces& places);
Environment jax_environment(const RankIdentity& identity, const ForeignPlaces& places);

}  // namespace systole
