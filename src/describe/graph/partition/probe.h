#pragma once
// Values that a run shows: a named value inside a graph becomes an output of it, so that it has a place in the plan
// like any other, and the host can read it after the function ran. A value inside a repeat is stacked over the
// iterations.
//
// Names are those that the model gave (Value::named): "logits"; inside a repeat over layers with the iteration's index
// before it: "block.3.attn.norm".

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "describe/graph/ir.h"

namespace systole {

// A named value of a graph, or of the body of one of its repeats.
struct Probeable {
  std::string name;             // "logits", "attn.norm"
  std::int64_t iterations = 0;  // 0: outside of repeats
  // As a person names it: "logits", "block.3.attn.norm".
  std::string at(std::int64_t iteration) const;
};

// In the order in which they are made; a name once.
std::vector<Probeable> probeable(const Graph& graph);

// Whether the whole name matches, as in a shell: '*' is any text, '.' and '/' in it too, '?' a character, [0-3] one of
// these.
bool glob_matches(const std::string& glob, const std::string& name);

// Those of which some iteration is matched by one of the globs. Errors: not_found, naming each glob that matches
// nothing, with the nearest names; `also`: other names that a glob may match (parameters).
Result<std::vector<Probeable>> probes_matching(const Graph& graph, std::span<const std::string> globs,
                                               std::span<const std::string> also = {});

// The graph with an output "probe/<name>" for each.
Graph with_probes(const Graph& graph, std::span<const Probeable> probes);

}  // namespace systole
