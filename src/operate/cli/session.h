#pragma once
// A run, prepared: the data, the job and its predictions from a Workload, on the machine that `machine.h` opens.
// Prints nothing.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "describe/spec/plan.h"
#include "describe/spec/source.h"
#include "describe/spec/workload.h"
#include "execute/data/build.h"
#include "execute/runtime/executor.h"
#include "execute/train/job.h"
#include "execute/train/ledger.h"
#include "execute/train/memory_plan.h"
#include "ground/base/clock.h"
#include "ground/store/lock.h"
#include "ground/store/store.h"
#include "operate/cli/hf_folder.h"
#include "operate/cli/machine.h"
#include "predict/perf/estimate.h"

namespace systole::cli {

// A Workload from a file ("-": standard input), and where its values stand there. Errors: not_found; those of
// read_workload.
Result<Workload> load_workload(const std::string& path, const WorkloadOptions& options);
Result<Workload> load_workload(const std::string& path, const WorkloadOptions& options, WorkloadSource& source);

using Progress = std::function<void(std::string_view stage, Bytes done)>;

struct Data {
  std::unique_ptr<Store> files, folder;  // what the dataset borrows
  std::optional<Dataset> dataset;
  Bytes resident() const;
  std::optional<Error> cut_pairs() const;  // what to tell when some are longer than their rows
};
struct DataRequest {
  Progress progress;
  Seconds patience;  // how long another process may work in the folder
  // Of a run that goes on: its folder, and the key of the dataset that it was begun with; empty: whatever there is now.
  std::string run, begun;
  // What is to be made is made by a process of its own, a copy of this one, so that what the making leaves behind
  // (SentencePiece's trainer keeps tens of MB) is not this process's. REQUIRES then: this process has one thread.
  bool apart = false;
};
// Tokens of the workload's text, built where they are not there yet. Nothing for made-up data.
// Errors: those of build_dataset; busy while another process builds in the folder; invalid, before anything is built
// where that can tell, when they are not those of `begun`.
Result<Data> prepare_data(const Workload& workload, const WorkloadSource& source, const DataRequest& request);
// Whether the files that the workload names are there: all that are missing, each at its place in the document.
Status check_data_files(const Workload& workload, const WorkloadSource& source);
// The key of the dataset that the workload's text becomes, built or not; reads the text's bytes.
Result<std::string> dataset_key_of(const Workload& workload, const WorkloadSource& source);

// What a device of another stage of the pipeline needs.
struct StageMemory {
  std::int64_t rank = 0;
  OutsideArena outside;
  MemoryPlan memory;
};

struct Origin;  // origin.h

// The Plan of a job on a machine, and what it was made from.
struct Prepared {
  Workload workload;
  Machine machine;
  Data data;
  Job job;
  OutsideArena outside;
  MemoryPlan memory;
  std::vector<StageMemory> other_stages;  // none without a pipeline, nor of a rank alone
  Estimate estimate;
  Plan plan;
  std::unique_ptr<Executor> executor;  // compiled, not started: no arena yet
  std::int64_t rank = 0;               // of the mesh, whose Program it is
  std::optional<HfFolder> weights;     // that it begins from, found to fit
  // The checkpoint that it begins from, found to fit; null: none, or it has begun. resume.from of `workload` is its
  // name.
  std::shared_ptr<const Origin> origin;
  MemoryBound bound;  // who set the limit of `plan`
};

struct PrepareOptions {
  std::string backend = "cpu";
  std::string pin_isa;    // that this process is held to
  bool over_tcp = false;  // as in MachineUse
  std::optional<RanksLink> link;
  std::shared_ptr<XlaHost> xla;       // as in MachineUse; opened by the first that is planned for
  std::optional<Bytes> memory_limit;  // --memory, over the workload's and the machine's
  std::int64_t sharers = 1;           // processes or threads that share it equally: ranks of one node
  std::int64_t rank = 0;              // the device of the mesh that is planned for
  bool alone = false;                 // a rank of a run: other stages are not looked at, somebody has
  bool data_may_be_absent = false;    // planning: go on without the text, its tables unknown
  DataRequest data;
  bool begins = true;        // model.weights are needed; a run that goes on has its own
  bool has_begun = false;    // so that resume.from is not looked at: the run kept what it meant
  WorkloadSource source;     // for the places in errors; empty: they have none
  std::vector<Error> notes;  // out: what was left unknown, and why
};

// Plans the workload: nothing of the model runs and no arena is allocated. Does not check the fit: see fits.
// `ledger`: whose time it is, of which compiling is told apart; null: nobody's.
Result<Prepared> prepare(const Workload& workload, PrepareOptions& options, Clock& clock, TimeLedger* ledger = nullptr);
// Refuses what does not fit its limit, on this device or one of another stage. Errors: does_not_fit.
Status fits(const Prepared& prepared);
// That devices along an axis of the mesh do the same work, with what to do instead; nothing: all axes are used.
std::optional<Error> idle_axes(const Prepared& prepared);
// An error of make_job at its place in the workload, with what to do.
Error told_of_job(const WorkloadSource& source, Error error);
// One error, the others behind it. REQUIRES: at least one.
Error together(std::vector<Error> errors);
// The limit that this process is held to: of a node's its share.
Bytes limit_of(const Workload& workload, const PrepareOptions& options);

// What rows the workload's model is trained on, of text that `tokenizer` made.
RowReaderOptions row_options(const Workload& workload, const Tokenizer& tokenizer, std::int64_t batch_rows,
                             RowPass pass, Clock& clock);

}  // namespace systole::cli
