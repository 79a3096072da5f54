#include "describe/models/t5/block.h"

#include "describe/models/activation.h"

namespace systole {

Value T5Block::norm(Value x, const std::string& name) const {
  return rms_norm(x, stack_[name + ".scale"], config_.eps).y;
}

Value T5Block::self(Value x, const std::function<Value(Value q, Value k, Value v)>& attend) const {
  x.named("block.in");
  const Value n = norm(x, "norm1").named("attn.norm");
  const Value q = stack_.project(n, "attn.q", "e", "hd").named("attn.q");
  const Value k = stack_.project(n, "attn.k", "e", "hd").named("attn.k");
  const Value v = stack_.project(n, "attn.v", "e", "hd").named("attn.v");
  const Value o = attend(q, k, v).named("attn.o");
  return add(x, stack_.drop(stack_.project(o, "attn.o", "hd", "e").named("attn.out"), 0));
}

KeysAndValues T5Block::keys_and_values(Value encoded) const {
  return {stack_.project(encoded, "cross.k", "e", "hd"), stack_.project(encoded, "cross.v", "e", "hd")};
}

Value T5Block::cross(Value x, const std::function<Value(Value q)>& attend) const {
  const Value q = stack_.project(norm(x, "norm2"), "cross.q", "e", "hd").named("cross.q");
  const Value o = attend(q).named("cross.o");
  return add(x, stack_.drop(stack_.project(o, "cross.o", "hd", "e").named("cross.out"), 1));
}

Value T5Block::feed_forward(Value x, const std::string& name, std::int64_t site) const {
  const Value n = norm(x, name).named("mlp.norm");
  Value act = stack_.project(n, "mlp.up", "e", "m").named("mlp.hidden");
  if (config_.gated) {
    act = mul(activate(config_.activation, stack_.project(n, "mlp.gate", "e", "m").named("mlp.gate")), act);
  } else {
    act = activate(config_.activation, act);
  }
  return add(x, stack_.drop(stack_.project(act.named("mlp.act"), "mlp.down", "m", "e").named("mlp.out"), site));
}

}  // namespace systole
