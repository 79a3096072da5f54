#pragma once
// Runs the rows of a batch that its journal does not have: the ones with the longest prompts first, so that texts of one
// length are computed together and no long one is left for the end. A row that cannot be computed gets an error in its
// place; it does not end the job.
//
//   BatchRun run(job, input, *work, *journal);
//   TRY(run.prepare());                                     // then run.price()
//   if (TRY(run.compute(told))) TRY(journal->finish());

#include <functional>
#include <vector>

#include "execute/serve/batch/batch_input.h"
#include "execute/serve/batch/batch_journal.h"
#include "execute/serve/batch/batch_shard.h"
#include "execute/serve/batch/batch_work.h"

namespace systole {

// What is left of a batch.
struct BatchPrice {
  std::int64_t rows = 0, prompt_tokens = 0;
  std::int64_t new_tokens = 0;  // where answers are as long as they may be, as in `calls`
  EngineCalls calls = {};
};

class BatchRun {
 public:
  // Called now and then; false: stop. `done` of all rows are read, or finished.
  using Told = std::function<bool(std::int64_t done)>;

  // Borrows all of them. The journal's rows are those of the shard, in their order. REQUIRES: input.complete(job);
  // job.name is the model's.
  BatchRun(const BatchJob& job, const BatchInput& input, BatchWork& work, BatchJournal& journal,
           const BatchShard& shard = {});

  // Reads and measures all rows; refused ones go into the journal. False: `told` said so.
  // `ids_are_known`: another run has read all rows of the input, and this one reads only its own.
  // Errors: invalid: two rows with one custom_id, naming both lines; those of the journal.
  Result<bool> prepare(const Told& told = {}, bool ids_are_known = false);
  BatchPrice price() const;

  // Computes what is left; once. False: `told` said so. What has ended is in the journal then, durable, and another
  // BatchRun goes on. Errors: those of the device and of the journal; another goes on after them, too.
  Result<bool> compute(const Told& told = {});

 private:
  struct Measured {
    std::size_t row = 0;
    RowSize size = {};
  };
  bool is_left(std::size_t row) const { return shard_.has(row) && !journal_.has(shard_.place(row)); }
  Status begin(std::size_t row);
  Status keep(std::vector<BatchRecord> records);
  std::int64_t done() const { return journal_.totals().rows; }

  const BatchJob& job_;
  const BatchInput& input_;
  BatchWork& work_;
  BatchJournal& journal_;
  const BatchShard shard_;
  std::vector<Measured> order_;
};

}  // namespace systole
