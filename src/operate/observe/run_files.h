#pragma once
// What lies in a run's folder, and finding the folders of runs.
//
//   runs/                     kRunsFolder of the command line
//     index.sqlite            derived (index.h); may be deleted at any time
//     quickstart-1/
//       workload.yaml         what was asked for, resolved
//       tokenizer.model       of a run of text, and tokenizer.json: its hash
//       weights.json          of a run that began from other people's weights: which
//       plan.json             what was chosen and predicted, written before anything is spent
//       events/000.jsonl      what happened: a file per process, by the order in which they opened the run
//       spans/000.ring        where each process was, to the last moment before a kill (ground/base/telemetry.h)
//       checkpoints/          unless checkpoint.folder says otherwise
//       lock.json             what its result depends on (systole run --lock)
//       lock                  held by the process that works on the run
//
// A folder with a plan.json or an events folder is a run's. Everything but the folders is derived from them.

#include <optional>
#include <string>
#include <vector>

#include "describe/spec/plan.h"
#include "describe/spec/run.h"
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

// "<name>-<n>", n one above the highest there is. Nothing is made. `runs` may be absent.
std::string next_run_name(Store* runs, const std::string& name);

// "events/003.jsonl": the next process's event file, its folder made. Errors: io, no_space.
Result<std::string> next_event_file(Store& run);
// Its event files, in the order in which they were opened. Empty when there are none.
Result<std::vector<std::string>> list_event_files(Store& run, const std::string& dir = "");

Result<bool> is_run(Store& store, const std::string& dir);
// Folders of runs directly below a store's root, sorted, but for those that this user may not look into: `refused`
// gets why. Errors: io.
Result<std::vector<std::string>> list_runs(Store& runs, std::vector<Error>* refused = nullptr);

// "spans/003.ring", of the process whose events are in "events/003.jsonl".
std::string span_file_of(const std::string& event_file);

struct RunRecord {
  std::optional<Plan> plan;                   // absent when it ended before it was planned
  std::vector<std::vector<Event>> processes;  // per process, in order
  std::vector<std::vector<Span>> spans;       // the newest of each process, oldest first; empty where no ring was left
  std::vector<Event> all() const;
};
// Errors: corrupt, unsupported (each with file and line), io; not_found when it holds no run.
Result<RunRecord> read_run(Store& store, const std::string& dir);

// The folder, as a path of this machine, that `asked` means: a folder that holds a run; a run's name below `runs`; its
// number, when only one run has it; or "", the run that was opened last, of those that may be read. Errors: not_found
// with the nearest names; io, of one that may not.
Result<std::string> find_run(const std::string& runs, const std::string& asked);

// Calendar time at which the run's last process opened it; "" when none did.
Result<std::string> opened_at(Store& store, const std::string& dir);

}  // namespace systole
