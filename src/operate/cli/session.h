#pragma once
// The composition root: makes the device, the data, the job and its predictions from a Workload, and hands them down.
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
#include "execute/train/memory_plan.h"
#include "ground/base/clock.h"
#include "ground/catalog/catalog.h"
#include "ground/store/lock.h"
#include "ground/store/store.h"
#include "operate/cli/hf_folder.h"
#include "predict/perf/estimate.h"

namespace systole::cli {

// This machine: the device that runs, and how fast the catalog says it is.
struct Machine {
  std::unique_ptr<Device> device;
  std::string identity;        // what must be the same for a calibration to hold
  std::string isa;             // instructions that the bits of results depend on, "avx512/avx512-bf16"; empty: on none
  std::string numerics;        // all that they depend on besides the Program and the number of threads
  std::optional<Error> stale;  // why this machine's entry in the user's catalog was not taken
  std::string catalog_entry, catalog_date, catalog_hash;
  MachineSpeed speed;
  std::string link_source;  // of speed.link: "shm, systole calibrate of 2026-11-22", for people
};

// How fast ranks speak to each other, and who says so.
struct RanksLink {
  LinkCost cost;
  std::string source;
};
// As calibrated on this machine, by whatever number of threads, else as the catalog estimates. `over_tcp`: ranks of
// several nodes; what their network costs is not known here, but that it costs no less than TCP within this one does.
// Errors: those of the catalog.
Result<RanksLink> find_link(Clock& clock, std::int64_t ranks, bool over_tcp);

struct MachineUse {
  std::int64_t ranks = 1;         // that a Program is for
  bool exact = false;             // for exact training
  bool over_tcp = false;          // ranks are of several nodes
  std::optional<RanksLink> link;  // that all ranks have agreed on; else find_link's
};

// The instruction set in the cpu backend's name → the entry of the catalog.
std::string default_entry(const std::string& target_name);

// What is known of machines: built in, and the user's files over it.
// Without `chips` the file of accelerators is left out, which takes a tenth of a plan's time to read; not so where the
// user has files of their own, which may lie over it.
Result<Catalog> read_catalog(bool chips = true);

// Whether this process may keep a core busy with each of so many threads: a team waits for its slowest, and more only
// make each step longer. `key` is where they were asked for: resources.threads, --threads. Errors: invalid.
Status check_threads(std::int64_t threads, const std::string& key);
// The same for a workload that the cpu is to run, at its place. Errors: invalid.
Status check_threads(const std::string& backend, const ResourcesSpec& resources, const WorkloadSource& source);

// Holds this process's devices to these instructions (Machine::isa, or one word), before the first of them is opened;
// empty: to none. Errors: invalid, unsupported.
Status pin_isa(const std::string& backend, const std::string& isa);
// Machine::numerics of this machine, pinned to that. Nothing where it cannot be.
std::optional<std::string> numerics_pinned_to(const std::string& isa);

// `backend`: cpu or reference. Errors: unsupported; those of the catalog.
Result<Machine> open_machine(const std::string& backend, const ResourcesSpec& resources, Clock& clock,
                             const MachineUse& use = {});

// A Workload from a file ("-": standard input), and where its values stand there. Errors: not_found; those of
// read_workload.
Result<Workload> load_workload(const std::string& path, const WorkloadOptions& options);
Result<Workload> load_workload(const std::string& path, const WorkloadOptions& options, WorkloadSource& source);

using Progress = std::function<void(std::string_view stage, Bytes done)>;

// Tokens of the workload's text, built where they are not there yet. Nothing for made-up data.
// Errors: those of build_dataset; busy while another process builds in the folder.
struct Data {
  std::unique_ptr<Store> files, folder;  // what the dataset borrows
  std::optional<Dataset> dataset;
  Bytes resident() const;
  std::optional<Error> cut_pairs() const;  // what to tell when some are longer than their rows
};
//
// `apart`: what is to be made is made by a process of its own, a copy of this one, so that what the making leaves
// behind (SentencePiece's trainer keeps tens of MB) is not this process's. REQUIRES then: this process has one thread.
// `patience`: how long to wait for another process that works in the folder.
Result<Data> prepare_data(const Workload& workload, const WorkloadSource& source,
                          const systole::cli::Progress& progress, bool apart = false, Seconds patience = {});
// Whether the files that the workload names are there: all that are missing, each at its place in the document.
Status check_data_files(const Workload& workload, const WorkloadSource& source);
// The key of the dataset that the workload's text becomes, built or not; reads the text's bytes.
Result<std::string> dataset_key_of(const Workload& workload, const WorkloadSource& source);

// The Plan of a job on a machine, and what it was made from.
struct Prepared {
  Workload workload;
  Machine machine;
  Data data;
  Job job;
  OutsideArena outside;
  MemoryPlan memory;
  Estimate estimate;
  Plan plan;
  std::unique_ptr<Executor> executor;  // compiled, not started: no arena yet
  std::int64_t rank = 0;               // of the mesh, whose Program it is
  std::optional<HfFolder> weights;     // that it begins from, found to fit
};

struct PrepareOptions {
  std::string backend = "cpu";
  std::string pin_isa;    // that this process is held to
  bool over_tcp = false;  // as in MachineUse
  std::optional<RanksLink> link;
  std::optional<Bytes> memory_limit;  // over the workload's and the machine's
  std::int64_t rank = 0;              // the device of the mesh that is planned for
  bool data_may_be_absent = false;    // planning: go on without the text, its tables unknown
  Progress progress;
  Seconds data_patience;     // how long another process may work on the data
  bool begins = true;        // model.weights are needed; a run that goes on has its own
  WorkloadSource source;     // for the places in errors; empty: they have none
  std::vector<Error> notes;  // out: what was left unknown, and why
};

// Plans the workload: nothing of the model runs and no arena is allocated. Does not check the fit: see check_fit.
Result<Prepared> prepare(const Workload& workload, PrepareOptions& options, Clock& clock);
// An error of make_job at its place in the workload, with what to do.
Error told_of_job(const WorkloadSource& source, Error error);
// One error, the others behind it. REQUIRES: at least one.
Error together(std::vector<Error> errors);
// The limit that the whole process is held to.
Bytes limit_of(const Workload& workload, const PrepareOptions& options);

// What rows the workload's model is trained on, of text that `tokenizer` made.
RowReaderOptions row_options(const Workload& workload, const Tokenizer& tokenizer, std::int64_t batch_rows,
                             RowPass pass, Clock& clock);

}  // namespace systole::cli
