#pragma once
// For tests of communicators and transports: collectives by their definition, element by element in f64, and ranks that
// run them over a transport of the test's choice.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "execute/comm/collectives.h"

namespace systole {

// The transports of `num_ranks` ranks that are threads of this process; rank i is the i-th.
using MakeRanks = std::function<std::vector<std::unique_ptr<Transport>>(std::int32_t num_ranks)>;
// loopback, with rings of the usual size or of so many bytes.
MakeRanks ranks_over_loopback(std::optional<std::int64_t> ring_bytes = {});

// Runs `body` on a thread for each device of the mesh.
void on_ranks(const Mesh& mesh, const MakeRanks& make,
              const std::function<void(std::int32_t rank, Communicator&, Transport&)>& body);

// Calls of every kind by every algorithm over `axis` along every dim that can be cut, of small shapes.
std::vector<CollectiveCall> calls_on(const Mesh& mesh, const std::string& axis, DType dtype);
// Not a sum that its algorithm would round more than once.
bool carries_out(const CollectiveCall& call);

// Runs it on all ranks, twice, and expects what the definition says, the operand untouched, and bytes_sent = what the
// transport wrote = what the transfers say. `in_place`: the result takes the operand's place.
void expect_defined(const CollectiveCall& call, const Mesh& mesh, const MakeRanks& make, bool in_place = false);

// Starts many calls of both lists at once, moves on with them at random, waits for some and at the end for all, a few
// times over, and expects of each what the definition says, and of all together the bytes.
void expect_defined_beside_others(const std::vector<CollectiveCall>& calls, const Mesh& mesh, const MakeRanks& make);

}  // namespace systole
