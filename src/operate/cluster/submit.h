#pragma once
// Acts on a run on a cluster, the same for every target. Each act is idempotent and safe against a kill at any point:
// nothing is submitted twice, nothing is left behind.

#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "operate/cluster/audit.h"
#include "operate/cluster/cluster.h"
#include "operate/cluster/record.h"
#include "operate/cluster/run_status.h"
#include "operate/render/render.h"

namespace systole {

struct SubmissionContext {  // shared by all acts
  Submissions& submissions;
  Audit& audit;
  Clock& clock;
  std::string told = {};  // RunStatus::told of the run, from an earlier query
};

struct SubmitRequest {
  Record record;  // filled in: run, target, from, folder, digests, price
  std::vector<RenderedFile> files;
  std::vector<RenderedFile> sources;  // the rendered inputs: workload.yaml, perhaps plan.json
  std::string program;                // file to start there; record.program_sha256 is its digest
  bool again = false;                 // resubmits a run that has ended, to go on
};
struct Submitted {
  Record record;
  bool was_there = false;  // it was already submitted, and goes on
};
// Writes a record with a new number to disk before sending, and looks for that number on the target before sending
// again. So a retry after any failure results in one job. Takes over a job there with the same workload and no record,
// left by a submitter that died. Errors: exists: another workload of that name, or it is on another cluster, or over
// without `again`; busy: another process submits it; those of ClusterClient::send.
Result<Submitted> submit(ClusterClient& cluster, const SubmitRequest& ask, SubmissionContext context);

// Copies records kept on the target that are missing here, so its runs can be managed from here. Returns those. Errors:
// io.
Result<std::vector<Record>> adopt(ClusterClient& cluster, SubmissionContext context);

struct StopRequest {
  bool now = false;                   // without saving
  Seconds patience = Seconds(120.0);  // afterwards it is ended without saving
};
// Asks the run to save and end, and waits until it is over. Returns how it ended. Errors: io; busy, it does not end.
Result<RunStatus> stop(ClusterClient& cluster, const Record& record, const StopRequest& ask, SubmissionContext context);

// Deletes everything that submitting made: what the target holds, and its folder in `.submitted`; not its results.
// `now`: even if it is unknown whether it is over. Errors: busy, it is not over, or that is unknown.
Status purge(ClusterClient& cluster, const Record& record, SubmissionContext context, bool now = false);

}  // namespace systole
