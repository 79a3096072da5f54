#pragma once
// A batch that any number of processes compute together, on one machine or on several with a shared folder. They may join
// and leave at any time. The job is cut into more shards than there are processes; each process takes a shard that nobody
// has and nobody has finished, then the next. The last one joins them (batch_shard.h) and removes their files.
//
//   answers.jsonl.shards/job                      how many shards, and of which job: whoever begins writes it
//   answers.jsonl.shards/answers.0-of-16.jsonl    and so on, with their journals
//
// Who has a shard holds the lock of its journal, which the system gives up when the process dies, and so another one
// takes it at once and goes on where its journal ends. There is no lease that could run out under a slow process. Even
// where a lock is lost (a machine cut off from its file server), no row is there twice: a journal counts the first line
// of a row, and the output is made of one line of each.

#include <functional>
#include <optional>

#include "execute/serve/batch/batch_journal.h"
#include "execute/serve/batch/batch_shard.h"

namespace systole {

// `asked`: 0: auto: of 64 rows or so, 16 to 256 of them; never more than rows.
std::size_t shards_for(std::int64_t asked, std::size_t rows);

struct SharedBatch {
  BatchOutput output;
  std::size_t rows = 0;                                                    // of the whole
  std::int64_t shards = 0;                                                 // as asked
  std::int64_t now = 0;                                                    // Unix seconds
  std::function<BatchFacts(const std::optional<BatchShard>&)> facts = {};  // nothing: of the whole
  // Computes what the journal lacks. `began`: Unix seconds, of the whole job. False: asked to stop.
  std::function<Result<bool>(const BatchShard&, BatchJournal&, std::int64_t began)> compute = {};
  // Called where the output is whole, with its lock held: by the process that joined it (`anew`), and by those that find
  // it there.
  std::function<Status(bool anew)> seal = {};
  // Called where only other processes can go on; waits a moment. `left`: shards that are not finished. False: asked to
  // stop.
  std::function<bool(std::size_t left)> wait = {};
};

struct SharedBatchEnd {
  bool is_finished = false;              // the output is there; otherwise `wait` or `compute` said to stop
  bool is_joined = false;                // by this process
  std::size_t shards = 0, computed = 0;  // of the job; by this process
  BatchTotals totals = {};               // of the job, if it is finished
};

// Errors: exists: the shards or the output are another job's, naming what differs; those of `compute` and of journals.
Result<SharedBatchEnd> run_shared(const SharedBatch& batch);

// Takes the rows that shards have finished or begun into the journal of the whole, without their text: for a price.
Status count_shards(const SharedBatch& batch, BatchJournal& whole);

}  // namespace systole
