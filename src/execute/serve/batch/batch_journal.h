#pragma once
// The journal of a batch, beside its output: which rows are finished, and what their lines of the output are. A job that
// was killed goes on from it, and computes no finished row again. The output is written whole, once all rows are there.
//
//   auto journal = TRY(BatchJournal::open({store, "answers.jsonl"}, facts, now));   // locks it
//   if (!journal->has(row)) { …; TRY(journal->append({row, …, line})); }
//   TRY(journal->finish());                                                   // answers.jsonl
//
// Its file answers.jsonl.journal/rows is appended to. A line is eight hexadecimal digits of the CRC-32C of the rest, a
// space, and one of
//
//   job {"systole_batch":1,"rows":3,"began":1767225600,"model":"…","input":"…","options":"…"}      the first
//   row INDEX PROMPT_TOKENS ANSWER_TOKENS FAILED LINE        a finished row; a later line of the same row is ignored
//   done ROWS FAILED PROMPT_TOKENS ANSWER_TOKENS             the output is there; it replaces the rows
//
// A line whose checksum is wrong is dropped: the last one of a process that was killed, or one that a power cut tore. An
// append reaches the system at once, so a killed process loses no finished row; the disk has it after the sync that
// follows at the latest `sync_rows` rows later.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ground/store/store.h"

namespace systole {

struct BatchRecord {
  std::size_t row = 0;
  std::int64_t prompt_tokens = 0, answer_tokens = 0;
  bool failed = false;
  std::string line = {};  // of the output, without its end
};

// Whose journal it is: hashes of the model, of the input and of the options that the results depend on.
struct BatchFacts {
  std::size_t rows = 0;
  std::string model, input, options;
};

// A file in a store, and its path as the user wrote it, for messages; empty: the name.
struct BatchOutput {
  Store& store;
  std::string name, path = {};
};

struct BatchTotals {
  std::int64_t rows = 0, failed = 0;  // finished; of them
  std::int64_t prompt_tokens = 0, answer_tokens = 0;
};

// Calls `take` with each line of a file of this size, without its end, and its offset; the last one is left out if it
// lacks its end. Returns whether it does. Errors: those of `take` and the store.
Result<bool> for_each_line(Store& store, const std::string& path, std::int64_t size,
                           const std::function<Status(std::string_view, std::int64_t)>& take);

// A store in memory with what BatchJournal::open reads of the output: a journal there says what is finished, and nothing
// is written beside the output. Errors: those of the store.
Result<std::unique_ptr<Store>> copy_for_reading(const BatchOutput& output);

class BatchJournal {
 public:
  // Opens the journal of the output, or begins it. `now`: Unix seconds. The store must outlive it.
  // Another job's journal without a row is begun anew.
  // Errors: exists (the journal is another job's, naming what differs; the output is there, and not this job's); busy
  // (another process runs the job); unsupported (of a later program); those of the store.
  static Result<std::unique_ptr<BatchJournal>> open(const BatchOutput& output, const BatchFacts& facts,
                                                    std::int64_t now, std::int64_t sync_rows = 64);

  std::int64_t began() const { return began_; }  // Unix seconds; of the job, not of this process
  bool is_finished() const { return finished_; }
  bool has(std::size_t row) const { return finished_ || places_[row].bytes > 0; }
  std::int64_t dropped() const { return dropped_; }  // lines
  const BatchTotals& totals() const { return totals_; }

  // REQUIRES: not has(record.row). Errors: no_space, io; the journal can be opened again.
  Status append(const BatchRecord& record);
  Status sync();
  // Writes the output whole, unless it is there with these rows, calls `make_more`, which makes of it what lies beside
  // it, and then the journal says so. Does nothing once that has happened. REQUIRES: it has all rows. Errors: exists:
  // another program has made the output meanwhile; those of `make_more`. The journal keeps the rows then.
  Status finish(const std::function<Status()>& make_more = {});

 private:
  struct Place {  // of a row's line of the output, in the file
    std::int64_t offset = 0, bytes = 0;
  };
  BatchJournal(const BatchOutput& output, const BatchFacts& facts);
  std::string header() const;
  Status begin(std::int64_t now);
  Status read_job(const std::string& payload);
  std::string way_out() const;
  Error other_job() const;
  Error other_output() const;
  Status for_each_piece(const std::function<Status(std::string_view)>& take) const;
  Result<bool> is_written() const;
  Status read();
  bool read_row(std::string_view payload, std::int64_t offset);
  bool read_done(std::string_view payload);
  Status open_to_append();

  Store& store_;
  const std::string output_, folder_, path_;
  const std::string shown_;  // of the output
  const BatchFacts facts_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<WritableFile> file_;  // null until the first append
  std::vector<Place> places_;
  std::string differs_;  // from the job of these facts; empty: nothing
  BatchTotals totals_;
  std::int64_t began_ = 0, size_ = 0, dropped_ = 0, unsynced_ = 0, sync_rows_ = 0;
  bool finished_ = false, torn_ = false;  // torn: the file does not end with a line's end
};

}  // namespace systole
