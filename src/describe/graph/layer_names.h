#pragma once
// Names of parameters that are stacked over layers: "{layer}" in "blocks.{layer}.attn.q" stands for the index on the
// outermost dim. Of a chunk of a pipeline, whose layers begin at another, index i of "blocks.{layer+8}.attn.q" is layer
// 8 + i; where only every second layer has the parameter, index i of "blocks.{layer*2+1}.mlp.up" is layer 2 i + 1. In a
// checkpoint each is a tensor: "blocks.8.attn.q".

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace systole {

struct LayerName {
  std::string prefix, after;                   // "blocks.", ".attn.q"
  std::int64_t first = 0;                      // layer of index 0
  std::int64_t step = 1;                       // to the layer of the next index
  std::string of(std::int64_t index) const;    // "blocks.8.attn.q"
  std::string from(std::int64_t layer) const;  // stacked, beginning at this layer

  // The stack that this is a part of, as long as it can be, and how many of its indices come before this part's.
  std::string whole() const { return from(first % step); }
  std::int64_t before() const { return first / step; }
};

// Nothing when the name has no layers. Errors: Failure(internal) for "{layer" that does not go on as it should.
std::optional<LayerName> layer_name(std::string_view name);

}  // namespace systole
