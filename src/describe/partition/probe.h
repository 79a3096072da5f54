#pragma once
// Probes: a named value inside a graph becomes an output of it. So it has a place in the memory plan, and the host can
// read it after the function has run. A value inside a repeat is stacked over the iterations.
//
// Names come from the model (Value::named): "logits". Inside a repeat over layers they have the iteration as a prefix:
// "block.3.attn.norm".

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "describe/ir/ir.h"

namespace systole {

// A named value of a graph, or of the body of one of its repeats.
struct Probeable {
  std::string name;             // "logits", "attn.norm"
  std::int64_t iterations = 0;  // 0: outside of repeats
  // The name for users: "logits", "block.3.attn.norm".
  std::string at(std::int64_t iteration) const;
};

// In the order of the nodes; each name once.
std::vector<Probeable> probeable(const Graph& graph);

// Shell-style match of the whole name: '*' is any text ('.' and '/' included), '?' one character, [0-3] a range.
bool glob_matches(const std::string& glob, const std::string& name);

// The probeable values of which some iteration matches a glob. `also`: other names that a glob may match (parameters).
// Errors: not_found, naming each glob that matches nothing, with the nearest names.
Result<std::vector<Probeable>> probes_matching(const Graph& graph, std::span<const std::string> globs,
                                               std::span<const std::string> also = {});

// The graph with an output "probe/<name>" for each probe.
Graph with_probes(const Graph& graph, std::span<const Probeable> probes);

}  // namespace systole
