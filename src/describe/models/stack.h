#pragma once
// The parameters of one stack of layers inside the body of its repeat, and operations shared by every family's block.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "describe/models/dropout.h"
#include "describe/models/layers.h"

namespace systole {

// Dropout sites of a stack: site `first` + layer × `sites` + a number below `sites`. Without a key nothing is dropped.
struct StackDropout {
  std::optional<DropoutKey> key;  // of the outer graph
  double rate = 0;
  std::int64_t first = 0, sites = 0;
};

class Stack {
 public:
  // Adds to `layers`, as slices, the parameters under stack_name(prefix, first_layer), those of the layers from
  // `first_layer` on; with a dropout key also the layer's index and the shared key. REQUIRES: all carries and all other
  // slices are already added.
  Stack(Layers& layers, const Parameters& outer, std::span<const Parameter> parameters, const std::string& prefix,
        const StackDropout& dropout, std::int64_t first_layer = 0);
  // One stack per layer of a body with `period` layers; stack j has layers first_layer + j, first_layer + period + j, …
  static std::vector<Stack> of_period(Layers& layers, const Parameters& outer, std::span<const Parameter> parameters,
                                      const std::string& prefix, const StackDropout& dropout, std::int64_t first_layer,
                                      std::int64_t period);

  // A parameter by its name in the layer: "attn.q".
  Value operator[](const std::string& name) const { return slices_.at(name); }
  // x[b, s, in] W[in, out], plus "<name>_bias" over `out` if it exists; dims are letters other than b and s.
  Value project(Value x, const std::string& name, const std::string& in, const std::string& out) const;
  Value drop(Value x, std::int64_t site) const;

 private:
  Stack() = default;

  std::map<std::string, Value> slices_;
  StackDropout dropout_;
  std::optional<DropoutKey> key_;  // inside the body
  std::optional<Value> layer_;     // i64[]
};

// x plus a vector over its last dims.
Value add_bias(Value x, Value bias);

}  // namespace systole
