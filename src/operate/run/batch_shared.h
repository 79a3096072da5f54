#pragma once
// One of the processes that compute a batch with shards together (shared_batch.h), by a model of this machine.

#include <functional>
#include <string>

#include "execute/serve/batch/batch_run.h"
#include "execute/serve/batch/shared_batch.h"
#include "ground/base/clock.h"
#include "ground/process/signal_watch.h"

namespace systole {

// Observers of one. All are set.
struct SharedViewers {
  std::function<void(const std::string&)> progress;
  std::function<void(std::size_t rows, std::size_t shards)> begun;  // before this process computes its first shard
};

struct SharedOutcome {
  SharedBatchEnd end;
  BatchTotals here;  // of this process
  Seconds took;
};

class SharedProcess {
 public:
  // Returns the work of all shards, made for the first of them. `began`: Unix seconds, of the whole job.
  using Work = std::function<Result<BatchWork*>(std::int64_t began)>;
  // Borrows all but `shared` and `work`. `shared` lacks `compute` and `wait`.
  SharedProcess(const BatchJob& job, const BatchInput& input, SharedBatch shared, Work work,
                const SharedViewers& viewers, const SignalWatch& watch, Clock& clock);

  // Errors: as run_shared.
  Result<SharedOutcome> run();

 private:
  Result<bool> compute(const BatchShard& shard, BatchJournal& journal, std::int64_t began);

  const BatchJob& job_;
  const BatchInput& input_;
  SharedBatch shared_;
  const Work work_;
  const SharedViewers& viewers_;
  const SignalWatch& watch_;
  Clock& clock_;
  bool begun_ = false;
  BatchTotals done_ = {};  // here
};

}  // namespace systole
