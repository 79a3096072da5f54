#pragma once
// --lora of `systole serve`: the adapters that requests choose by name. Of a model over ranks each rank reads its own
// files, and the adapters that rank 0 serves are held to them.

#include <span>
#include <string>
#include <vector>

#include "execute/weights/lora_adapter.h"
#include "operate/run/rank_messages.h"

namespace systole {

struct NamedAdapters {
  std::vector<std::string> names;
  std::vector<LoraAdapter> all;  // as many
};

// `words`: each NAME=PATH. `model`: what requests call the model itself; empty: any name is free.
// Errors: invalid: another word, or a name twice; those of read_lora_adapter.
Result<NamedAdapters> read_adapters(std::span<const std::string> words, const ModelSpec& spec,
                                    const std::string& model = {});

// What rank 0 says of its own.
std::vector<RankedAdapter> ranked_adapters(const NamedAdapters& adapters);
// Another rank's, in rank 0's order, which `ranked` has. Errors: those of read_adapters, with the adapter's name where it
// is one's; invalid: a name that only one of the two has, or an adapter of another rank or with other numbers.
Result<NamedAdapters> adapters_of_rank(std::span<const std::string> words, const ModelSpec& spec,
                                       std::span<const RankedAdapter> ranked);

}  // namespace systole
