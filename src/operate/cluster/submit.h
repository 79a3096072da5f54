#pragma once
// What the commands do to a run on a cluster, the same on every target. Each act is safe against being killed at any
// point and against being asked for twice: nothing is sent twice, nothing is left behind.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "operate/cluster/audit.h"
#include "operate/cluster/cluster.h"
#include "operate/cluster/record.h"
#include "operate/render/render.h"

namespace systole {

struct Desk {  // what all acts need
  Submissions& submissions;
  Audit& audit;
  Clock& clock;
};

struct SubmitAsk {
  Record record;  // of it: run, target, from, folder, digests, price
  std::vector<RenderedFile> files;
  std::vector<RenderedFile> sources;  // what they were rendered from: workload.yaml, perhaps plan.json
  std::string program;                // the file to start there; its digest is record.program_sha256
  bool again = false;                 // one that has ended is sent again, to go on
};
struct Submitted {
  Record record;
  bool was_there = false;  // it had been submitted, and goes on
};
// A record with a number is on disk before anything is sent, and what carries that number is looked for before it is
// sent again: however this ends, doing it again comes to one job. One that runs there by the same workload and has no
// record, because whoever sent it is gone, is taken over.
// Errors: exists, another workload of that name, or it is on another cluster, or over and `again` is not asked; busy,
// another one submits it; those of ClusterClient::send.
Result<Submitted> submit(ClusterClient& cluster, const SubmitAsk& ask, Desk desk);

// The records that the target itself keeps and that are not here, now here: its runs can be gone on with from here.
// Returns those. Errors: io.
Result<std::vector<Record>> adopt(ClusterClient& cluster, Desk desk);

// What the target and the run's own ledger say of it.
Result<std::vector<Seen>> look(ClusterClient& cluster, const Record& record);
// Of many at once: the target is asked a single time.
Result<std::vector<std::vector<Seen>>> look(ClusterClient& cluster, std::span<const Record> records);

struct StopAsk {
  bool now = false;                   // without saving
  Seconds patience = Seconds(120.0);  // then it is ended without
};
// Asks it to save and end, and waits until it is over. Returns how it ended. Errors: io; busy, it does not end.
Result<Seen> stop(ClusterClient& cluster, const Record& record, const StopAsk& ask, Desk desk);

// Takes away all that submitting it made: what the target holds, and its folder of `.submitted`. Not its results.
// `now`: also where nobody can say whether it is over. Errors: busy, it is not over, or that is not known.
Status purge(ClusterClient& cluster, const Record& record, Desk desk, bool now = false);

}  // namespace systole
