#pragma once
// A stack profile: what a software stack (Megatron, MaxText, FSDP, …) makes of a chip, in a dozen numbers that hold for
// all models, chips and sizes. data/perf/stacks.yaml has them; `systole backtest --fit` finds them on published steps.
// A stack that nobody has fitted gets the profile "default".

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

struct StackProfile {
  std::string name, doc;
  std::vector<std::string> called;  // parts of names of frameworks that are this stack

  // What is known of it, fitted on nothing.
  bool whole_step = false;    // a compiler sees the step: the host launches it once, and a loop's gradients are reduced
                              // behind it
  bool even_cost = false;     // stages are cut so that they take equally long, head and embedding counted
  bool gathers_late = false;  // a sharded optimizer's gather and scatter stand in the open, around the update
  bool half_copies = true;    // keeps parameters in bf16 beside those in f32
  bool sums_in_products = false;  // products add weights' gradients to their sums (Megatron's
                                  // gradient_accumulation_fusion)
  bool splits_dispatch = false;   // ranks of a tensor group each send a part of what goes to experts
  bool whole_again = false;       // a block that is computed again is computed to its end

  bool holds_loss = false;  // what a loss kept of a microbatch lives until that of the next one is made

  // Shares of what the chip reaches (accelerator.h), unless it says otherwise.
  double products = 0.85;
  double attention = 0.8;      // fused
  double movement = 1.3;       // bytes of what is neither, for each that its ops read and write
  double launch = 2e-5;        // seconds of the host for a kernel
  double step = 0.04;          // seconds that every step takes besides
  double network = 0.7;        // of the network between machines
  double hop = 12e-6;          // seconds for each rank of a ring over it
  double tensor_hidden = 0.3;  // of collectives of activations
  double data_hidden = 0.6;    // of the work beside which parameters are gathered and gradients reduced
  double stall =
      1e-5;  // seconds that a layer waits for each rank of its tensor group, where stages lie on several machines
  // Of memory.
  double context = 1.5;     // GiB that are not the Program's: contexts, libraries, buffers of the network
  double fragments = 0.05;  // of what activations take, between them
};

// A number of a profile: what it may be at all, whoever fits it.
struct StackNumber {
  const char* name;  // its key in stacks.yaml
  double StackProfile::*member;
  const char* meaning;  // with its unit
  double least, most;   // physical bounds
  const char* why;      // they are
  bool log;             // differs by factors, else by differences
  double spread;        // that is expected between stacks: of its logarithm, or of itself
};
std::span<const StackNumber> stack_numbers();

// Reads profiles. Errors: invalid, all at once, with place: an unknown key, a number missing or out of its bounds, more
// than kMostStacks beside the default, no "default".
constexpr int kMostStacks = 8;
Result<std::vector<StackProfile>> read_stacks(std::string_view text, const std::string& filename);
std::string to_yaml(std::span<const StackProfile> stacks);
// Those in data/perf/stacks.yaml when Systole was built.
const std::vector<StackProfile>& builtin_stacks();

// The profile of that name; else the one with the longest of `called` in it; else "default".
const StackProfile& stack_of(std::span<const StackProfile> stacks, std::string_view framework);

}  // namespace systole
