#pragma once
// First workloads, one for each kind of place: short enough to read, complete enough to run or render unchanged. They
// train a language model on a text, or a linear regression, which needs no file.

#include <span>
#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "operate/init/gpu_machine.h"
#include "operate/init/model_size.h"
#include "operate/init/text_facts.h"

namespace systole {

enum class Pattern {
  local,       // a language model on this machine
  linear,      // linear regression on this machine
  gce,         // one GPU machine of Compute Engine
  vm,          // machines reachable by ssh
  slurm,       // a Slurm cluster
  kubernetes,  // a Kubernetes cluster
};
const char* name_of(Pattern pattern);
std::span<const Pattern> patterns();
// Errors: invalid, with the nearest names; for names of other systems, with the reason why there is no pattern.
Result<Pattern> pattern_named(std::string_view name);

// A language model on a text. Its numbers of steps are chosen from the machine's predicted step time.
struct FirstModel {
  TextFacts text;
  ModelSize size;
  std::int64_t steps = 1;
  std::string predicted;  // "about 4 min on this machine, by its plan"; empty: unknown
};

struct FirstWorkload {
  Pattern pattern = Pattern::local;
  std::string name;                     // of the workload and its runs
  const FirstModel* model = nullptr;    // null: linear regression; REQUIRES: set for local, null for linear
  const GpuMachine* machine = nullptr;  // REQUIRES: set for gce
};

// The workload's text, with comments. Errors: invalid: `name` cannot name a run.
Result<std::string> first_workload(const FirstWorkload& first);

// The target to render for; "": it is run directly.
std::string target_of(Pattern pattern);

}  // namespace systole
