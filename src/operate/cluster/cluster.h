#pragma once
// A run on somebody's cluster, from outside: sent, seen, stopped. One interface and a class a target, so that every
// command behaves the same on all. The cluster keeps what runs; records (record.h) keep which run that is. Whatever a
// target makes carries the run's name and the submission's number, by which a lost record is found again.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

struct Record;
struct Workload;

enum class Phase {
  queued,     // waits for its machines
  starting,   // has them; its ranks do not run yet
  running,    //
  saving,     // was asked to stop, or gives its machines back
  preempted,  // lost its machines, and waits for others
  failed,     // over, of itself or for want of retries
  stopped,    // over, because somebody asked
  done,       // over
  unknown,    // nobody can say any more
};
const char* name_of(Phase phase);
bool is_over(Phase phase);

// One job of a target, or one of an array's.
struct Seen {
  std::string id;  // the target's own
  std::string run, submission;
  Phase phase = Phase::unknown;
  std::string reason;         // why it waits or failed, in the target's words or ours; may be empty
  std::int64_t restarts = 0;  // how often it was begun again
  std::string nodes;          // as the target writes them; empty before it has any
  std::int64_t began_at = 0;  // seconds of Unix time; 0: not yet
  std::int64_t ended_at = 0;  // 0: not yet, or not known
  std::string workload = {};  // its SHA-256, where the target keeps it: by it a run without a record is found again
  bool sure = false;          // the target tells when its ranks run and how they ended; else the ledger does
  bool answered = true;       // else the machines that know it could not be asked, and the reason says why
  bool operator==(const Seen&) const = default;
};
inline constexpr const char* kBudgetUsed = "its budget is used";  // how the reason of a run that stopped at it begins
// What the exit code of its ranks says of a job that is over; `asked`: to stop (docs/reference/exit-codes.md).
void end_with(Seen& job, std::int64_t code, bool asked);
// Of a run whose jobs are these: one that runs counts before one that waits, that before one that failed, and so on.
// Several in unlike phases are counted in the reason. No job: unknown.
Seen overall(std::span<const Seen> jobs);

// What came of one of a run's writers: a job, or one of the machines that a job has.
struct OutputPiece {
  std::string source, text;
};
// What the jobs of a run write, as it grows.
class Output {
 public:
  virtual ~Output() = default;
  // What is there beyond what was given before; a source's bytes each once and in order, lines perhaps in parts. Of a
  // source that has more than a MiB perhaps not all: the next call goes on.
  // Errors: io, it cannot be read now; the next call goes on where the last one that was fine ended.
  virtual Result<std::vector<OutputPiece>> more() = 0;
  virtual Seconds pace() const { return Seconds(0.2); }  // between calls
};

class ClusterClient {
 public:
  using Whereabouts = std::map<std::string, std::string>;
  virtual ~ClusterClient() = default;
  virtual const char* name() const = 0;
  // Gives what was rendered into record.place to the target, labelled. Returns the target's name for it.
  // Errors: io, whether it took it is not known; any other kind, it did not: invalid, the target refuses it; not_found,
  // its programs are not here.
  virtual Result<std::string> send(const Record& record) = 0;
  // All jobs of ours that the target still knows under the names of these runs, whichever submission they are of. Where
  // jobs cannot append to their ledger themselves, what is new of it is brought home first (add_to_ledger).
  // Errors: io, it cannot be asked.
  virtual Result<std::vector<Seen>> look(std::span<const Record> records) = 0;
  // What they write, from its begin; `all`: of each machine, where a job has several and one speaks for them.
  // Errors: io.
  virtual Result<std::unique_ptr<Output>> output(const Record& record, bool all) = 0;
  // Asks all of them to save and end; `now`: without saving. Does not wait. Fine when it is over. Errors: io.
  virtual Status stop(const Record& record, bool now) = 0;
  // Words that run `command`, or a shell without one, where rank 0 of the run runs, or on `node`.
  // Errors: not_found, no such node of the run.
  virtual Result<std::vector<std::string>> inside(const Record& record, const Seen& job, const std::string& node,
                                                  std::span<const std::string> command) = 0;
  // Copies a folder of the run's, as record.folder names it, to `into`, a new folder of this machine.
  // Errors: not_found, there is none; io.
  virtual Status bring(const Record& record, const std::string& folder, const std::string& into) = 0;
  // Whether this machine has the folders of its runs under their own names.
  virtual bool shares_folders() const { return true; }
  // Takes away what the target holds of it. It is over. Errors: io.
  virtual Status purge(const Record& record) = 0;
  // Which one of many of its kind it is, for records: with it open_cluster finds it again.
  virtual Whereabouts where() const { return {}; }
  // What it decides where a workload says nothing, before that is rendered.
  virtual void settle(Workload&) const {}
  // Records that the target itself keeps, of every run or of one, so that a machine without ours finds them.
  // Errors: io.
  virtual Result<std::vector<Record>> recall(const std::string& run);
  // Whether the program is brought there from here; else it is there, as in an image.
  virtual bool brings_program() const { return true; }
  // What makes it doubtful that it is the one that is meant, told whenever it is spoken to.
  virtual std::optional<Error> doubt() const { return {}; }
  // What people should know of it before something is sent; asks it. Errors: io.
  virtual Result<std::vector<std::string>> warnings() { return std::vector<std::string>(); }
};

// Those that runs are submitted to.
std::vector<std::string> cluster_targets();

// Errors: invalid, with the nearest; unsupported, for what can only be rendered yet.
Result<std::unique_ptr<ClusterClient>> open_cluster(std::string_view target,
                                                    const ClusterClient::Whereabouts& where = {});

}  // namespace systole
