#pragma once
// Prepares a run: the data, the job and its predictions, from a Workload and the machine that machine.h opens. Prints
// nothing.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "describe/spec/plan.h"
#include "describe/spec/source.h"
#include "describe/spec/workload.h"
#include "execute/runtime/executor.h"
#include "execute/train/memory_plan.h"
#include "execute/train/time_ledger.h"
#include "execute/train/training_job.h"
#include "execute/weights/hf_folder.h"
#include "ground/base/clock.h"
#include "ground/store/store.h"
#include "operate/run/built_data.h"
#include "operate/run/machine.h"
#include "operate/run/run_data.h"
#include "predict/perf/estimate.h"

namespace systole {

// A Workload from a file ("-": standard input), with the position of its values in the file. Errors: not_found; those
// of read_workload.
Result<Workload> load_workload(const std::string& path, const WorkloadOptions& options);
Result<Workload> load_workload(const std::string& path, const WorkloadOptions& options, WorkloadSource& source);

// Memory of a device of another pipeline stage.
struct StageMemory {
  std::int64_t rank = 0;
  OutsideArena outside;
  MemoryPlan memory;
};

struct Origin;  // origin.h

// The Plan of a job on a machine, and its inputs.
struct PlannedRun {
  Workload workload;
  Machine machine;
  Data data;
  std::optional<EpochRows> epoch;  // of `data`; nothing: not rows of text
  Job job;
  OutsideArena outside;
  MemoryPlan memory;
  std::vector<StageMemory> other_stages;  // empty without a pipeline, and in a rank of a run
  Estimate estimate;
  std::optional<PlannedFeed> feed;  // nothing: not rows of text
  Plan plan;
  std::unique_ptr<Executor> executor;  // compiled, not started: no arena yet
  std::int64_t rank = 0;               // in the mesh; `job` has its Program
  std::optional<HfFolder> weights;     // initial weights, known to fit
  // The checkpoint that the run begins from, known to fit; null: none, or the run has begun. Its name is in resume.from
  // of `workload`.
  std::shared_ptr<const Origin> origin;
  MemoryBound bound;  // the source of the limit of `plan`
};

struct PrepareOptions {
  std::string backend = "cpu";
  std::string pin_isa;    // instructions that this process is pinned to
  bool over_tcp = false;  // as in MachineUse
  std::optional<RanksLink> link;
  std::shared_ptr<XlaHost> xla;       // as in MachineUse; opened at the first use
  std::optional<Bytes> memory_limit;  // --memory; overrides the workload's and the machine's
  std::int64_t sharers = 1;           // ranks of one node, processes or threads, that share it equally
  std::int64_t rank = 0;              // device of the mesh to plan for
  bool alone = false;                 // a rank of a run: its starter has planned the other stages
  bool data_may_be_absent = false;    // planning: continue without the text; tables of its size are unknown
  DataRequest data;
  bool begins = true;        // model.weights are needed; a run that goes on has its own
  bool has_begun = false;    // skips resume.from: the run recorded its meaning
  WorkloadSource source;     // for positions in errors; empty: errors have none
  std::vector<Error> notes;  // out: what is unknown, and why
};

// Plans the workload. Runs nothing of the model and allocates no arena. Does not check the fit: see fits. `ledger`:
// gets the time, compilation separately; null: no ledger.
Result<PlannedRun> prepare(const Workload& workload, PrepareOptions& options, Clock& clock,
                           TimeLedger* ledger = nullptr);
// How training reads its rows, with the planned threads and queue. REQUIRES: a dataset.
RowReaderOptions training_rows(const PlannedRun& prepared);
// Refuses a job that exceeds its memory limit, on this device or on one of another stage. Errors: does_not_fit.
Status fits(const PlannedRun& prepared);
// Warns of mesh axes along which devices repeat the same work, with a remedy; nothing: all axes are used.
std::optional<Error> idle_axes(const PlannedRun& prepared);
// An error of make_job at its position in the workload, with a remedy.
Error told_of_job(const WorkloadSource& source, Error error);
// The memory limit of this process: its share of the node's.
Bytes limit_of(const Workload& workload, const PrepareOptions& options);

}  // namespace systole
