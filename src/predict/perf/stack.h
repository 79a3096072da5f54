#pragma once
// A stack profile: how well a software stack (Megatron, MaxText, FSDP, …) uses a chip, in a dozen numbers that hold for
// all models, chips and sizes. data/perf/stacks.yaml has them; `systole backtest --fit` fits them to published steps.
// A stack without a fit gets the profile "default".

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

struct StackProfile {
  std::string name, doc;
  std::vector<std::string> called;  // substrings of names of frameworks that are this stack

  // Known facts, not fitted.
  bool whole_step = false;    // the step is compiled as a whole: the host launches it once, and a loop's gradients are
                              // reduced after the loop
  bool even_cost = false;     // stages are balanced by time, including head and embedding
  bool gathers_late = false;  // a sharded optimizer's gather and scatter are exposed, around the update
  bool half_copies = true;    // keeps bf16 copies of f32 parameters
  bool sums_in_products = false;  // products accumulate weight gradients (Megatron's gradient_accumulation_fusion)
  bool splits_dispatch = false;   // each rank of a tensor group sends a part of the tokens to experts
  bool whole_again = false;       // recomputation runs a block to its end

  bool holds_loss = false;  // what a loss saves of a microbatch lives until the next loss is computed

  // Fractions of what the chip reaches (accelerator.h), unless stated otherwise.
  double products = 0.85;
  double attention = 0.8;      // fused
  double movement = 1.3;       // memory-bound ops: bytes moved per byte that the ops read and write
  double launch = 2e-5;        // seconds of the host to launch a kernel
  double step = 0.04;          // fixed seconds of a step
  double network = 0.7;        // bandwidth of the network between machines
  double hop = 12e-6;          // seconds of latency per step of a ring over the network
  double tensor_hidden = 0.3;  // of tensor parallelism's collectives
  double data_hidden = 0.6;    // of the computation that parameter gathers and gradient reductions overlap
  double stall = 1e-5;         // seconds that a layer waits per rank of its tensor group, if stages span machines
  // Memory.
  double context = 1.5;     // GiB outside the Program: contexts, libraries, network buffers
  double fragments = 0.05;  // memory lost between activations, as a fraction of theirs
};

// A number of a profile and its bounds in every fit.
struct StackNumber {
  const char* name;  // its key in stacks.yaml
  double StackProfile::*member;
  const char* meaning;  // with its unit
  double least, most;   // physical bounds
  const char* why;      // why these bounds
  bool log;             // stacks differ by factors; false: by differences
  double spread;        // expected between stacks: of the logarithm if `log`, else of the number
};
std::span<const StackNumber> stack_numbers();

// Reads profiles. Errors: invalid, all at once, with place: an unknown key, a number missing or out of its bounds, more
// than kMostStacks besides "default", no "default".
constexpr int kMostStacks = 8;
Result<std::vector<StackProfile>> read_stacks(std::string_view text, const std::string& filename);
std::string to_yaml(std::span<const StackProfile> stacks);
// The profiles in data/perf/stacks.yaml when Systole was built.
const std::vector<StackProfile>& builtin_stacks();

// The profile of that name; else the one with the longest `called` in `framework`; else "default".
const StackProfile& stack_of(std::span<const StackProfile> stacks, std::string_view framework);

}  // namespace systole
