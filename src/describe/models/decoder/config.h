#pragma once
// A decoder's spec made explicit: sizes without zeros, and groups of equal layers.

#include <vector>

#include "describe/spec/families/decoder.h"

namespace systole {

// Layers of one repeat. The first group holds the leading layers without experts, if there are any; the second all
// others. Where only every n-th of those has experts, a repeat's body is a period of n unlike layers.
struct LayerGroup {
  const char* name;                 // name of the repeat's body
  std::int64_t first, count;        // its first layer; number of periods
  std::vector<DecoderSpec> period;  // specs of the layers of one period
  std::int64_t size() const { return static_cast<std::int64_t>(period.size()); }
};
std::vector<LayerGroup> layer_groups(const DecoderSpec& config);

// The config with its zeros replaced by their defaults. Errors: Failure(invalid) that names the key and valid values.
DecoderSpec checked(DecoderSpec config);

}  // namespace systole
