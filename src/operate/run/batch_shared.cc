#include "operate/run/batch_shared.h"

#include "ground/base/counted.h"

namespace systole {

SharedProcess::SharedProcess(const BatchJob& job, const BatchInput& input, SharedBatch shared, Work work,
                             const SharedViewers& viewers, const SignalWatch& watch, Clock& clock)
    : job_(job),
      input_(input),
      shared_(std::move(shared)),
      work_(std::move(work)),
      viewers_(viewers),
      watch_(watch),
      clock_(clock) {
  shared_.compute = [this](const BatchShard& shard, BatchJournal& journal, std::int64_t began) {
    return compute(shard, journal, began);
  };
  shared_.wait = [this](std::size_t left) {
    if (left > 0) viewers_.progress(fmt::format("waiting for {} of other processes", counted(left, "shard")));
    clock_.sleep(Seconds(0.2));
    return !watch_.stop_requested();
  };
}

Result<bool> SharedProcess::compute(const BatchShard& shard, BatchJournal& journal, std::int64_t began) {
  BatchWork& work = *TRY(work_(began));
  if (!begun_) viewers_.begun(input_.rows(), shard.count);
  const BatchTotals before = journal.totals();
  BatchRun run(job_, input_, work, journal, shard);
  const auto told = [&](const char* what) {
    return [&, what](std::int64_t rows) {
      viewers_.progress(fmt::format("shard {}: {} {}", to_string(shard), counted(rows, "row"), what));
      return !watch_.stop_requested();
    };
  };
  const bool is_whole = TRY(run.prepare(told("read"), begun_)) && TRY(run.compute(told("finished")));
  begun_ = true;
  const BatchTotals& all = journal.totals();
  done_.rows += all.rows - before.rows;
  done_.prompt_tokens += all.prompt_tokens - before.prompt_tokens;
  done_.answer_tokens += all.answer_tokens - before.answer_tokens;
  return is_whole;
}

Result<SharedOutcome> SharedProcess::run() {
  const Seconds began = clock_.now();
  const SharedBatchEnd end = TRY(run_shared(shared_));
  return SharedOutcome{end, done_, clock_.now() - began};
}

}  // namespace systole
