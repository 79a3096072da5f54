#include "operate/cli/batch_shared.h"

#include "ground/base/counted.h"

namespace systole::cli {

SharedProcess::SharedProcess(const BatchJob& job, const BatchInput& input, SharedBatch shared, Work work,
                             std::string place, const SignalWatch& watch, Context& context)
    : job_(job),
      input_(input),
      shared_(std::move(shared)),
      work_(std::move(work)),
      place_(std::move(place)),
      watch_(watch),
      context_(context) {
  shared_.compute = [this](const BatchShard& shard, BatchJournal& journal, std::int64_t began) {
    return compute(shard, journal, began);
  };
  shared_.wait = [this](std::size_t left) {
    if (left > 0) context_.out.progress(fmt::format("waiting for {} of other processes", counted(left, "shard")));
    context_.clock.sleep(Seconds(0.2));
    return !watch_.stop_requested();
  };
}

Result<bool> SharedProcess::compute(const BatchShard& shard, BatchJournal& journal, std::int64_t began) {
  BatchWork& work = work_(began);
  if (!begun_) {
    context_.out.notice(fmt::format("{} in {}; more processes of this job may join and leave",
                                    counted(input_.rows(), "row"), counted(shard.count, "shard")));
  }
  const BatchTotals before = journal.totals();
  BatchRun run(job_, input_, work, journal, shard);
  const auto told = [&](std::int64_t rows) {
    context_.out.progress(fmt::format("shard {}: {} finished", to_string(shard), counted(rows, "row")));
    return !watch_.stop_requested();
  };
  const bool is_whole = TRY(run.prepare(told, begun_)) && TRY(run.compute(told));
  begun_ = true;
  const BatchTotals& all = journal.totals();
  done_.rows += all.rows - before.rows;
  done_.prompt_tokens += all.prompt_tokens - before.prompt_tokens;
  done_.answer_tokens += all.answer_tokens - before.answer_tokens;
  return is_whole;
}

std::optional<BatchTotals> SharedProcess::run() {
  const Seconds began = context_.clock.now();
  const SharedBatchEnd end = run_shared(shared_).value();
  const Seconds took = context_.clock.now() - began;
  context_.out.end_progress();
  const bool is_text = is_generated(job_.kind);
  const std::string here =
      fmt::format("{} of {} here, {} and {}, in {} on {}", counted(done_.rows, "row"),
                  counted(end.computed, "finished shard"), counted(done_.prompt_tokens, "prompt token"),
                  counted(is_text ? done_.answer_tokens : 0, "new token"), to_string(took), place_);
  if (!end.is_finished) {
    context_.out.note("stopped with " + here, "go on with: " + context_.command_line);
    return std::nullopt;
  }
  const BatchTotals& all = end.totals;
  const std::string failed = all.failed > 0 ? fmt::format(", {} of them with an error", all.failed) : "";
  context_.out.notice(fmt::format("{}{} in {}; {}", counted(all.rows, "row"), failed, shared_.output.path, here));
  context_.out.json(Node::map({{"rows", all.rows},
                               {"failed", all.failed},
                               {"rows_here", done_.rows},
                               {"shards", end.shards},
                               {"shards_here", end.computed},
                               {"joined_here", end.is_joined},
                               {"prompt_tokens", all.prompt_tokens},
                               {"tokens", all.answer_tokens},
                               {"seconds_s", took.count()},
                               {"place", place_},
                               {"out", shared_.output.path}}));
  return all;
}

}  // namespace systole::cli
