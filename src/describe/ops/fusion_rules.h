#pragma once
// Which chains of elementwise ops a device runs as one `fusion` node. Plain data of its Target.

namespace systole {

struct FusionRules {
  bool chains = false;    // whether elementwise ops are fused
  int max_operands = 12;  // operands of one chain, at most
  int max_steps = 32;
};

}  // namespace systole
