#pragma once
// Runs that were submitted, as the commands that follow them name them.

#include <memory>
#include <optional>
#include <string>

#include "operate/cli/command.h"
#include "operate/cli/rendering.h"
#include "operate/cluster/ledger.h"
#include "operate/cluster/submit.h"
#include "operate/observe/submitted_index.h"

namespace systole::cli {

// A run out of the records, with the cluster that has it.
class ClusterRun {
 public:
  ClusterRun(Submissions submissions, Record its_record, std::unique_ptr<ClusterClient> its_cluster, Clock& clock)
      : record(std::move(its_record)),
        cluster(std::move(its_cluster)),
        submissions_(std::move(submissions)),
        audit_(submissions_.path(), clock),
        clock_(clock) {}
  Desk desk() { return {submissions_, audit_, clock_}; }
  std::vector<Seen> look() { return systole::look(*cluster, record).value(); }
  // Of its folder (of one task of an array), where this machine sees it.
  std::string folder(const std::string& task = "") const;

  Record record;
  std::unique_ptr<ClusterClient> cluster;

 private:
  Submissions submissions_;
  Audit audit_;
  Clock& clock_;
};

// As systole::open_cluster; warns where it is doubtful that it is the one that is meant.
Result<std::unique_ptr<ClusterClient>> open_cluster(std::string_view target, const ClusterClient::Whereabouts& where,
                                                    Printer& out);

// What gives a rendered job to the cluster, under the name of its run, from this folder.
SubmitAsk ask_of(const RenderedJob& job, const ClusterClient& cluster);

// The run that was submitted under that name; nothing when none was. Throws what keeps its record from being read, or
// its cluster from being spoken to.
std::unique_ptr<ClusterRun> cluster_run_if_any(const std::string& run, Context& context);
// Throws not_found, with the nearest, when none was.
std::unique_ptr<ClusterRun> cluster_run(const std::string& run, Context& context);

// "running as slurm job 17 on n[0-3]", "queued as slurm job 17: Resources: ...".
std::string told(const Record& record, const Seen& seen);

struct Used {
  double node_seconds = 0;
  std::optional<double> dollars;  // nothing: nobody knows the price
  bool goes_on = false;           // it is of now, and grows
};
// By the run's ledger, and by its jobs where that has no end of one that is over.
Used used_by(const Record& record, std::span<const Seen> jobs, Clock& clock);

// All that is told of a run.
SubmittedRow row_of(const Record& record, std::span<const Seen> jobs, const Used& used);
// {"run", "target", "id", "state", "reason", "folder", ..., "node_seconds", "dollars", "budget", "seen_at", "jobs":
// [...]}; "seen_at": of one whose cluster cannot be asked now, else null.
Node node_of(const SubmittedRow& row);
Node run_node(const Record& record, std::span<const Seen> jobs, Clock& clock);

}  // namespace systole::cli
