#pragma once
// For tests of communicators and transports: collectives computed by their definition, element by element in f64, and
// ranks that run them over a transport of the test's choice.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "execute/comm/collectives.h"

namespace systole {

// The transports of `num_ranks` threads of this process, in rank order.
using MakeRanks = std::function<std::vector<std::unique_ptr<Transport>>(std::int32_t num_ranks)>;
// loopback, with rings of the default size or of `ring_bytes`.
MakeRanks ranks_over_loopback(std::optional<std::int64_t> ring_bytes = {});

// Runs `body` on a thread for each device of the mesh.
void on_ranks(const Mesh& mesh, const MakeRanks& make,
              const std::function<void(std::int32_t rank, Communicator&, Transport&)>& body);

// Small calls of every kind by every algorithm over `axis`, along every dim that can be split.
std::vector<CollectiveCall> calls_on(const Mesh& mesh, const std::string& axis, DType dtype);
// False for a sum that its algorithm would round more than once.
bool carries_out(const CollectiveCall& call);

// Runs it on all ranks, twice. Expects the result of the definition, an unchanged operand, and bytes_sent = bytes that
// the transport wrote = bytes of the transfers. `in_place`: the result overwrites the operand.
void expect_defined(const CollectiveCall& call, const Mesh& mesh, const MakeRanks& make, bool in_place = false);

// Starts many calls at once, progresses them at random, waits for some and at the end for all, a few times. Expects the
// result of the definition for each, and the total bytes of all.
void expect_defined_beside_others(const std::vector<CollectiveCall>& calls, const Mesh& mesh, const MakeRanks& make);

}  // namespace systole
