#pragma once
// Client of a cluster: submits, queries and stops runs from outside. One interface with one class per target, so every
// command behaves the same on all. The cluster knows its jobs; records (record.h) map runs to them. Everything created
// on a target is labelled with the run's name and the submission's number, so a lost record can be recovered.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/run_state.h"
#include "ground/base/result.h"
#include "ground/base/units.h"
#include "operate/cluster/allocation_ledger.h"

namespace systole {

struct Record;
struct Workload;

// A job of a target, or one task of an array.
struct JobStatus {
  std::string id;  // the target's id
  std::string run, submission;
  RunState state = RunState::unknown;
  std::string reason;         // why it waits or failed, in the target's words or ours; may be empty
  std::int64_t restarts = 0;  // number of restarts
  std::string nodes;          // in the target's notation; empty until assigned
  std::int64_t began_at = 0;  // seconds of Unix time; 0: not yet
  std::int64_t ended_at = 0;  // 0: not yet, or unknown
  std::string workload = {};  // SHA-256 of the workload, if the target keeps it; identifies a run without a record
  std::optional<std::int64_t> exit_code = {};  // of its ranks, if the target or its ledger has it
  // When it held its machines, if its target records that; otherwise its jobs write their own ledger.
  std::vector<AllocationInterval> allocations = {};
  bool sure = false;     // the target knows when its ranks run and how they ended; otherwise the ledger does
  bool answered = true;  // otherwise the machines that know could not be queried; the reason says why
  bool operator==(const JobStatus&) const = default;
};
// Sets the final state from the ranks' exit code; `asked`: a stop was requested (docs/reference/exit-codes.md).
void end_with(JobStatus& job, std::int64_t code, bool asked);
// The state of a run with these jobs. A running job counts before a waiting one, that before a failed one, and so on.
// The reason counts jobs in different states. No job: unknown.
JobStatus overall(std::span<const JobStatus> jobs);

// Output of one writer of a run: a job, or one of the machines of a job.
struct OutputPiece {
  std::string source, text;
};
// The growing output of a run's jobs.
class Output {
 public:
  virtual ~Output() = default;
  // Returns new output: each byte of a source once and in order; lines may be split. If a source has more than a MiB,
  // the result may be partial, and the next call continues. Errors: io, it cannot be read now; the next call continues
  // after the last successful one.
  virtual Result<std::vector<OutputPiece>> more() = 0;
  virtual Seconds pace() const { return Seconds(0.2); }  // between calls
};

class ClusterClient {
 public:
  using ClusterLocation = std::map<std::string, std::string>;
  virtual ~ClusterClient() = default;
  virtual const char* name() const = 0;
  // Submits the files rendered into record.place, labelled. Returns the target's id. Errors: io: unknown whether the
  // target took it; any other kind: it did not: invalid, the target refuses it; not_found, its programs are not
  // installed here.
  virtual Result<std::string> send(const Record& record) = 0;
  // All our jobs that the target still knows under these runs' names, of any submission. Changes nothing, there or
  // here. Errors: io, it cannot be queried.
  virtual Result<std::vector<JobStatus>> query(std::span<const Record> records) = 0;
  // Records the end of a run on the target, if this client stopped it and nothing else records that. Returns whether it
  // did, and query() then answers with it. Errors: io.
  virtual Result<bool> record_end(const Record&) { return false; }
  // Output of the jobs from the beginning; `all`: from each machine, if a job has several and by default one is shown.
  // Errors: io.
  virtual Result<std::unique_ptr<Output>> output(const Record& record, bool all) = 0;
  // Asks all jobs to save and end; `now`: without saving. Does not wait. Succeeds if the run is over. Errors: io.
  virtual Status stop(const Record& record, bool now) = 0;
  // The command line that runs `command`, or a shell if empty, on rank 0's node, or on `node`. Errors: not_found, the
  // run has no such node.
  virtual Result<std::vector<std::string>> inside(const Record& record, const JobStatus& job, const std::string& node,
                                                  std::span<const std::string> command) = 0;
  // Copies a folder of the run, as named by record.folder, to `into`, a new folder on this machine. Errors: not_found,
  // there is none; io.
  virtual Status bring(const Record& record, const std::string& folder, const std::string& into) = 0;
  // Whether this machine sees its runs' folders under the same paths.
  virtual bool shares_folders() const { return true; }
  // Deletes what the target holds of a run. REQUIRES: the run is over. Errors: io.
  virtual Status purge(const Record& record) = 0;
  // Identifies this cluster among others of its kind, for records; operate/targets/job_targets.h reopens it from that.
  virtual ClusterLocation where() const { return {}; }
  // Sets the target's defaults in a workload, before rendering.
  virtual void set_defaults(Workload&) const {}
  // Records kept on the target, of every run or of one, so a machine without ours finds them. Errors: io.
  virtual Result<std::vector<Record>> recall(const std::string& run);
  // Whether the program is uploaded; otherwise it is there, for example in an image.
  virtual bool brings_program() const { return true; }
  // A warning that this may be a different cluster than the intended one, shown at each use.
  virtual std::optional<Error> doubt() const { return {}; }
  // Warnings to show before a submission; queries the cluster. Errors: io.
  virtual Result<std::vector<std::string>> warnings() { return std::vector<std::string>(); }
};

}  // namespace systole
