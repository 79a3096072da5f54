#pragma once
// The best ways to train a workload on what is offered.
//
// Best first (Hart, Nilsson and Raphael, 1968): candidates wait by a bound of their score, then by a tighter one
// (bounds.h), are composed when they come to the front (composed.h: exact time, memory at least), wait by that, and are
// made into Programs when they come to the front again. What comes out then is the best of all that is left, so the
// first N that fit are the N best of the whole space, without most of it having been composed. `exhaustive` makes
// Programs of everything; both give the same answer.
//
// Candidates: pipe × data × fsdp × context × expert × model of the devices; state, gradients or parameters in parts
// along fsdp; rows of a microbatch; 1F1B of one chunk a stage or more; nothing, attention or blocks done again. Rows of
// fewer than 8,192 tokens are not cut along context. GPipe is not among them: it takes as long as 1F1B and holds more.
// Stages of a model with several stacks of layers are not composed but made, which takes minutes for all: pipelines of
// such a model are among them where nothing else can be an answer.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "predict/perf/device_memory.h"
#include "predict/perf/step_time.h"
#include "predict/plan/composed.h"

namespace systole {

struct Offered {
  std::string name;  // "512 x h100"
  Cluster cluster;
  KernelChoice kernels;
  StackProfile stack;
  std::optional<DollarsPerHour> price;  // of all of it
  std::size_t group = 0;                // of offers of which the best is wanted besides: an accelerator's
};

enum class Objective { fastest, cheapest };

struct SearchRequest {
  std::vector<Offered> offered;
  Objective objective = Objective::fastest;
  double steps = 1;  // of the whole training
  std::optional<Seconds> deadline;
  std::optional<Dollars> budget;
  std::size_t best = 100;
  bool of_groups = false;  // also the best of each group that has none among those
  bool exhaustive = false;
  bool pipelines = true;
  bool staged_stacks = true;  // pipelines of a model with several stacks of layers, where nothing else fits
  int threads = 2;
};

// A candidate whose Programs were made.
struct Estimated {
  std::size_t offer = 0;
  Candidate candidate;
  StepTime step;
  DeviceMemory memory;  // of the stage that needs most
  double model_flops = 0;
  Seconds total;                   // of all steps
  std::optional<Dollars> dollars;  // of all steps
  double utilisation = 0;          // of the dense peak
};

// Where candidates ended; they add up to `candidates`.
struct SearchCounts {
  std::int64_t candidates = 0;
  std::int64_t over_memory_by_bound = 0, over_memory_composed = 0, over_memory = 0;  // the last: by their Programs
  std::int64_t unpriced = 0;                                                         // where dollars decide
  std::int64_t over_limit = 0;                                                       // deadline or budget
  std::int64_t impossible = 0;                                                       // no Program of it
  std::int64_t computed = 0;       // in full: these and no others are an answer
  std::int64_t left = 0;           // that cannot be among the best: by their bounds, or composed
  std::int64_t composed = 0;       // of all these
  bool without_pipelines = false;  // they were not looked at
};

// The least memory that a candidate of what was over memory needs, at the least.
struct LeastMemory {
  Bytes bytes;
  std::size_t offer = 0;
};

struct SearchResult {
  std::vector<Estimated> best;     // the best first
  std::vector<std::size_t> front;  // of `best`: none is both faster and cheaper
  std::vector<Estimated> others;   // of_groups: the best of each group that has none among `best`; by group
  SearchCounts counts;
  std::map<std::size_t, LeastMemory> least_memory;  // by group
};

// Deterministic, whatever the number of threads.
SearchResult search(const Composer& composer, const SearchRequest& request);

}  // namespace systole
