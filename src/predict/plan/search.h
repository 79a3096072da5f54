#pragma once
// Finds the best ways to train a workload on the offered hardware.
//
// Best-first search (Hart, Nilsson and Raphael, 1968). A priority queue orders candidates by a lower bound on their
// score. The bound tightens in four steps: two bounds (bounds.h), the composed cost (composed_cost.h: exact time, lower
// bound on memory), and the Programs themselves. A candidate takes its next step when it reaches the front. Whatever
// leaves the last step is the best of all that is left, so the first N that fit are the N best of the whole space, most
// of which is never composed. `exhaustive` builds the Programs of everything; both give the same answer.
//
// Candidates vary: pipe × data × fsdp × context × expert × model of the devices; the ZeRO stage along fsdp (state,
// gradients or parameters); rows of a microbatch; 1F1B with one or more chunks per stage; recomputation of nothing,
// attention or blocks. Rows of fewer than 8,192 tokens are not sharded along context. GPipe is left out: it takes as
// long as 1F1B and needs more memory. With rows of several lengths (Composer::shapes) a step's time is the mean over
// them by their shares, a bound is the mean of their bounds, and memory that of the length that needs most; they have
// no pipelines and no context axis (check_shapes). Stages of a model with several stacks of layers cannot be composed, and building
// them all takes minutes: such pipelines are searched only where nothing else can be an answer.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "predict/perf/device_memory.h"
#include "predict/perf/step_time.h"
#include "predict/plan/composed_cost.h"
#include "predict/plan/storage_cost.h"

namespace systole {

struct HardwareOption {
  std::string name;  // "512 x h100"
  Cluster cluster;
  KernelChoice kernels;
  StackProfile stack;
  std::optional<DollarsPerHour> price;  // of all devices together
  std::size_t group = 0;  // with of_groups: offers of one accelerator; the best of each group is wanted too
  std::vector<OfferedStorage> storages = {};  // one of which holds the rows; empty: it adds neither time nor dollars
};

enum class PlanObjective { fastest, cheapest };

struct SearchRequest {
  std::vector<HardwareOption> offered;
  PlanObjective objective = PlanObjective::fastest;
  double steps = 1;  // of the whole training run
  std::optional<Seconds> deadline;
  std::optional<Dollars> budget;
  std::size_t best = 100;
  bool of_groups = false;  // also the best of each group that has none among those
  bool exhaustive = false;
  bool pipelines = true;
  bool staged_stacks = true;  // with pipelines of models with several stacks of layers, where nothing else fits
  int threads = 2;

  StorageWish wish() const { return {objective == PlanObjective::cheapest, steps, deadline, budget}; }
};

// A candidate whose Programs were built.
struct Estimated {
  std::size_t offer = 0;
  Candidate candidate;
  StepTime step;
  DeviceMemory memory;  // of the stage that needs most
  double model_flops = 0;
  Seconds total;                   // of all steps
  std::optional<Dollars> dollars;  // of all steps
  std::size_t storage = 0;         // of the offer's
  Seconds waited;                  // of a step, for rows and checkpoints; in `total`, not in `step`
  double utilisation = 0;          // model FLOPs, as a share of the dense peak in all of that time
  std::vector<Seconds> lengths;    // the step of each length of rows, without waiting; `step` is their mean. Empty: one
};

// Where candidates ended; they add up to `candidates`.
struct SearchCounts {
  std::int64_t candidates = 0;
  std::int64_t over_memory_by_bound = 0, over_memory_composed = 0, over_memory = 0;  // the last: by their Programs
  std::int64_t unpriced = 0;                                                         // the price is needed and unknown
  std::int64_t over_limit = 0;                                                       // over deadline or budget
  std::int64_t impossible = 0;                                                       // no Program can be built
  std::int64_t computed = 0;       // estimated in full: only these can be an answer
  std::int64_t left = 0;           // cannot be among the best, by their bounds or composed cost
  std::int64_t composed = 0;       // of all these
  bool without_pipelines = false;  // pipelines were not searched
};

// A lower bound on the memory of the smallest candidate that does not fit.
struct LeastMemory {
  Bytes bytes;
  std::size_t offer = 0;
};

struct SearchResult {
  std::vector<Estimated> best;     // the best first
  std::vector<std::size_t> front;  // indices into `best` that none beats in both time and cost
  std::vector<Estimated> others;   // with of_groups: the best of each group that has none in `best`, by group
  SearchCounts counts;
  std::map<std::size_t, LeastMemory> least_memory;  // by group
};

// Deterministic for any number of threads.
SearchResult search(const Composer& composer, const SearchRequest& request);

}  // namespace systole
