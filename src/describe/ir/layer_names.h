#pragma once
// Names of parameters that are stacked over layers. "{layer}" in "blocks.{layer}.attn.q" stands for the index on the
// outermost dim. A pipeline chunk that starts at layer 8 has "blocks.{layer+8}.attn.q": index i is layer 8 + i. Where
// only every second layer has the parameter, index i of "blocks.{layer*2+1}.mlp.up" is layer 2 i + 1. In a checkpoint
// each index is a tensor of its own: "blocks.8.attn.q".

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace systole {

struct LayerName {
  std::string prefix, after;                   // "blocks.", ".attn.q"
  std::int64_t first = 0;                      // layer of index 0
  std::int64_t step = 1;                       // layers between two indices
  std::string of(std::int64_t index) const;    // "blocks.8.attn.q"
  std::string from(std::int64_t layer) const;  // stacked name that starts at this layer

  // The name of the longest stack that contains this one, and how many of its indices come before this one's.
  std::string whole() const { return from(first % step); }
  std::int64_t before() const { return first / step; }
};

// The parts of a stacked name; nothing for a name without "{layer". Errors: Failure(internal) when it is malformed.
std::optional<LayerName> layer_name(std::string_view name);

}  // namespace systole
