#pragma once
// The files in a run's folder, and how folders of runs are found.
//
//   runs/                     kRunsFolder of the command line
//     index.sqlite            derived (index.h), except for reports of clusters about active runs (submitted_index.h)
//     quickstart-1/
//       workload.yaml         the resolved request
//       tokenizer.model       for a run on text; also tokenizer.json: its hash
//       weights.json          for a run that began from imported weights: which
//       plan.json             choices and predictions, written before anything is spent
//       events/000.jsonl      events: one file per process, in the order in which they opened the run
//       spans/000.ring        what each process did, until the last moment before a kill (ground/base/telemetry.h)
//       checkpoints/          unless checkpoint.folder says otherwise
//       lock.json             what its result depends on (systole run --lock)
//       lock                  held by the process that works on the run
//
// A folder with a plan.json or an events folder is a run. Everything else is derived from the folders.

#include <optional>
#include <string>
#include <vector>

#include "describe/spec/plan.h"
#include "describe/spec/run.h"
#include "describe/spec/run_state.h"
#include "ground/base/telemetry.h"
#include "ground/store/store.h"

namespace systole {

struct RunFiles {
  static constexpr const char* plan = "plan.json";
  static constexpr const char* workload = "workload.yaml";
  static constexpr const char* events = "events";
  static constexpr const char* spans = "spans";
  static constexpr const char* tokenizer = "tokenizer.model";
  static constexpr const char* tokenizer_about = "tokenizer.json";
  static constexpr const char* weights = "weights.json";
};

// A folder of a store: `dir` is its path, "" for the store's root.
std::string inside(const std::string& dir, const std::string& leaf);

// "<name>-<n>", n one above the highest existing number. Creates nothing. `runs` may be absent.
std::string next_run_name(Store* runs, const std::string& name);

// "events/003.jsonl": the event file of the next process; creates its folder. Errors: io, no_space.
Result<std::string> next_event_file(Store& run);
// The run's event files, in the order in which they were opened. Empty if there are none.
Result<std::vector<std::string>> list_event_files(Store& run, const std::string& dir = "");

Result<bool> is_run(Store& store, const std::string& dir);
// Folders of runs directly below a store's root, sorted. Skips those that this user may not read, and adds the reason
// to `refused`. Errors: io.
Result<std::vector<std::string>> list_runs(Store& runs, std::vector<Error>* refused = nullptr);

// "spans/003.ring", for the process whose events are in "events/003.jsonl".
std::string span_file_of(const std::string& event_file);

struct RunRecord {
  std::optional<Plan> plan;                   // absent if the run ended before it was planned
  std::vector<std::vector<Event>> processes;  // per process, in order
  std::vector<std::vector<Span>> spans;       // the newest of each process, oldest first; empty if it left no ring
  std::vector<Event> all() const;
};
// Errors: corrupt, unsupported (each with file and line), io; not_found if it is not a run.
Result<RunRecord> read_run(Store& store, const std::string& dir);

// Resolves `asked` to a folder, as a local path: a folder that holds a run; a run's name below `runs`; its number, if
// only one run has it; or "", the last opened run of the readable ones. Errors: not_found with the nearest names; io,
// for one that cannot be read.
Result<std::string> find_run(const std::string& runs, const std::string& asked);

// The current state. `told`: the state by its events (state_of). Only if they record no end it examines the lock in the
// run's folder, a local path; if it may not read the folder, the state is unknown.
RunState state_now(RunState told, const std::string& folder);

// When the run's last process opened it, in calendar time; "" if none did.
Result<std::string> opened_at(Store& store, const std::string& dir);

}  // namespace systole
