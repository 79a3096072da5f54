#pragma once
// The parts of a t5's blocks, inside the body of a repeat:
//
//   x += drop(o(attend(q(norm x), k(norm x), v(norm x))))      self-attention
//   x += drop(o(attend(q(norm x), keys, values)))              cross-attention of a decoder, over the encoder's output
//   x += drop(down(activate(up(norm x))))                      or down(activate(gate(norm x)) up(norm x))
//
// Values that recompute policies and probes may name: those of a gpt's block, and cross.q, cross.o, cross.out,
// mlp.gate.

#include <functional>

#include "describe/models/stack.h"
#include "describe/models/t5/config.h"

namespace systole {

struct KeysAndValues {
  Value k, v;  // [b, s, heads, head]
};

class T5Block {
 public:
  T5Block(const T5Spec& config, const Stack& stack) : config_(config), stack_(stack) {}

  Value self(Value x, const std::function<Value(Value q, Value k, Value v)>& attend) const;
  // A decoder layer's keys and values of the encoder's output.
  KeysAndValues keys_and_values(Value encoded) const;
  Value cross(Value x, const std::function<Value(Value q)>& attend) const;
  // `norm`: the name of its norm; `site`: that of its dropout.
  Value feed_forward(Value x, const std::string& norm, std::int64_t site) const;

 private:
  Value norm(Value x, const std::string& name) const;
  const T5Spec& config_;
  const Stack& stack_;
};

}  // namespace systole
