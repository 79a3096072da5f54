#pragma once
// Building blocks of all families: a graph's parameters by name, and a stack of equal layers as one `repeat` or
// unrolled (the same body inlined over slices of the stacked parameters). The law: unrolled = rolled.

#include <map>
#include <string>

#include "describe/ops/ops.h"

namespace systole {

// The parameters of a graph by name. The graph must outlive it.
class Parameters {
 public:
  Parameters(Graph& graph, std::span<const Parameter> parameters);  // declares them all, in order
  // REQUIRES: declared.
  Value operator[](const std::string& name) const;

 private:
  std::map<std::string, Value> values_;
};

// The body of a repeat under construction. Each call of `carry`, `slice` and `share` adds an input of the body, bound
// to a value of the outer graph. Carries come first, then slices, then shared values, as `repeat` requires.
class Layers {
 public:
  Layers(std::string name, std::int64_t count) : body_(std::move(name)), count_(count) {}
  Layers(const Layers&) = delete;
  Layers& operator=(const Layers&) = delete;

  Graph& body() { return body_; }
  Value carry(const std::string& name, Value outer);
  Value slice(const std::string& name, Value outer);  // outer[count, ...] → [...]
  Value share(const std::string& name, Value outer);

  // Closes the body, whose outputs must be the carries in order, then further outputs. Call once.
  Repeat run(bool unrolled);

 private:
  Repeat run_unrolled() const;
  Graph body_;
  std::int64_t count_;
  std::vector<Value> carries_, stacked_, shared_;
};

// The name prefix of a stack: "blocks.{layer}."; "blocks.{layer+3}." if it begins at layer 3; "blocks.{layer*2+3}." if
// it has every second layer from there.
std::string stack_name(const std::string& prefix, std::int64_t first, std::int64_t step = 1);
// "blocks.{layer}.attn.q" → "attn.q"; nothing when the name does not belong to a stack.
std::optional<std::string> name_in_layer(const std::string& parameter);

}  // namespace systole
