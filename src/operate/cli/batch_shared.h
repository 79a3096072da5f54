#pragma once
// One of the processes that compute a batch with shards together (shared_batch.h), as `systole batch` shows it.

#include <functional>
#include <optional>
#include <string>

#include "execute/serve/batch/batch_run.h"
#include "execute/serve/batch/shared_batch.h"
#include "ground/process/signal_watch.h"
#include "operate/cli/command.h"

namespace systole::cli {

class SharedProcess {
 public:
  // Returns the work of all shards, made for the first of them. `began`: Unix seconds, of the whole job.
  using Work = std::function<BatchWork&(std::int64_t began)>;
  // Borrows all but `shared` and `work`. `shared` lacks `compute` and `wait`; `place`: device and machine.
  SharedProcess(const BatchJob& job, const BatchInput& input, SharedBatch shared, Work work, std::string place,
                const SignalWatch& watch, Context& context);

  // What the whole job came to; nothing: stopped, and said so. Throws its errors.
  std::optional<BatchTotals> run();

 private:
  Result<bool> compute(const BatchShard& shard, BatchJournal& journal, std::int64_t began);

  const BatchJob& job_;
  const BatchInput& input_;
  SharedBatch shared_;
  const Work work_;
  const std::string place_;
  const SignalWatch& watch_;
  Context& context_;
  bool begun_ = false;
  BatchTotals done_ = {};  // here
};

}  // namespace systole::cli
