#pragma once
// Names of parameters that are stacked over layers: "{layer}" in "blocks.{layer}.attn.q" stands for the index on the
// outermost dim. Of a chunk of a pipeline, whose layers begin at another, index i of "blocks.{layer+8}.attn.q" is layer
// 8 + i. In a checkpoint each is a tensor: "blocks.8.attn.q".

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace systole {

struct LayerName {
  std::string before, after;                   // "blocks.", ".attn.q"
  std::int64_t first = 0;                      // layer of index 0
  std::string of(std::int64_t index) const;    // "blocks.8.attn.q"
  std::string from(std::int64_t layer) const;  // stacked, beginning at this layer
};

// Nothing when the name has no layers. Errors: Failure(internal) for "{layer" that does not go on as it should.
std::optional<LayerName> layer_name(std::string_view name);

}  // namespace systole
