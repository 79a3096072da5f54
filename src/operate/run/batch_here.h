#pragma once
// Runs a batch job (execute/serve/batch) by a model of this machine: all of it or a shard, or joins the shards' files.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "execute/serve/batch/batch_run.h"
#include "operate/run/batch_shared.h"
#include "operate/run/run_messages.h"
#include "operate/run/served_model.h"
#include "predict/serving/step_times.h"

namespace systole {

// A job with all that it names.
struct ReadJob {
  std::string file;  // of the job, as it was asked for
  BatchJob job;
  Bytes bytes;  // of the input
  BatchInput input;
  std::optional<std::string> chat_template;
  std::unique_ptr<Store> folder;  // of the output
  ServedModel served;
  std::string hash;  // of the model

  // Of a shard; nothing: of the whole.
  BatchFacts facts(const std::optional<BatchShard>& shard) const;
  BatchOutput output(const std::optional<BatchShard>& shard) const;
  // What people open: the table, if the job has one; of a shard its lines.
  std::string result(const std::optional<BatchShard>& shard) const;
  // That no other program's file is where the table will be. Errors: exists.
  Status check_place() const;
  // Makes the array and the table of a whole output, if the job has them; unless they are there, or `anew`. REQUIRES: the
  // lock of the output's journal. Errors: exists: a table that is another's, or has other columns.
  Status seal(bool anew) const;
};

// `output`: instead of the job's, in a folder that is made; "": the job's. Errors: those of the job file, its input and
// its model.
Result<ReadJob> read_job(const std::string& path, const std::string& output, const RunMessages& messages);

// What a batch takes, before it starts: rows, tokens, time on this machine, memory and bytes of its input.
struct PricedBatch {
  BatchPrice price;
  std::int64_t rows = 0;        // of the job, with those that are finished
  std::int64_t failed = 0;      // of them, finished with an error
  std::optional<Seconds> time;  // with answers as long as they may be; nothing: `unknown` says why
  std::string unknown, device, rates;
  ServingMemory memory;  // of the engine
  Bytes input;
};

struct BatchOptions {
  std::optional<BatchShard> shard;  // nothing: the whole
  std::string backend = "cpu";
  bool dry_run = false;                // reads and prices the rows, and computes and writes nothing
  const SignalWatch* watch = nullptr;  // of a process that runs the job more than once; null: a signal ends it until it
                                       // computes
};

// Observers of a batch. All are set.
struct BatchViewers {
  std::function<void(const std::string&)> progress;
  std::function<void(const PricedBatch&)> priced;  // of a job that has rows left, before they are computed
};

struct BatchOutcome {
  std::string path;      // of the output, as the job has it
  bool stopped = false;  // by a signal: another call goes on
  BatchTotals before, all;
  std::int64_t dropped = 0;  // lines of the journal
  std::size_t rows = 0;
  std::string machine;
  Seconds took;
};

// Errors: those of the journal, of the model and its device, and of BatchRun; invalid, unsupported: the model does not do
// what the job asks.
Result<BatchOutcome> run_batch(const ReadJob& read, const BatchOptions& options, const BatchViewers& viewers,
                               Clock& clock);

// A job with shards: one of the processes that compute it together. It opens the model when it has something to compute.
// Errors: as run_shared, and those of the model.
struct SharedRun : SharedOutcome {
  std::string path, place;  // of the output; device and machine
};
Result<SharedRun> run_shared_batch(const ReadJob& read, const BatchOptions& options, const SharedViewers& viewers,
                                   Clock& clock);

struct JoinedBatch {
  std::string path;
  std::size_t shards = 0;
  BatchTotals all;
};

// Makes the output of the files of all its shards, in the order of the rows. Errors: not_found: a shard is missing or not
// finished; those of join_shard and the journal.
Result<JoinedBatch> join_batch(const ReadJob& read, Clock& clock);

}  // namespace systole
