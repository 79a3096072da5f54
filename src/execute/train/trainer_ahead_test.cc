// The order of work on a device that runs ahead of the host.

#include <gtest/gtest.h>

#include "execute/train/testing/trained.h"

namespace systole {
namespace {

using TrainerAhead = Trained;

// The next step starts before the loss of the current one is read, except after steps whose state is read. Events and
// checkpoints are the same as without running ahead.
TEST_F(TrainerAhead, only_the_order_is_another) {
  const std::vector<std::string> sets{"train.steps=7", "train.evaluate.every=3", "train.optimizer.schedule=linear",
                                      "train.optimizer.warmup=2"};
  std::string order;
  const auto traced = [&] {
    order.clear();
    TrainHooks hooks;
    hooks.in_compute = [&order](std::int64_t step) { order += fmt::format("{} ", step); };
    hooks.in_logging = [&order](std::int64_t step) { order += fmt::format("told {} ", step); };
    hooks.in_checkpoint = [&order](std::int64_t step) { order += fmt::format("saved {} ", step); };
    return hooks;
  };
  const auto kept = [&] { return checkpoint::load_manifest(folder_, 4).value(); };
  ASSERT_TRUE(process(sets, traced()).ok());
  EXPECT_EQ(order, "1 told 1 2 told 2 3 told 3 4 told 4 saved 4 5 told 5 6 told 6 7 told 7 saved 7 ");
  const std::vector<StepEnded> steps = all<StepEnded>();
  const std::vector<Evaluated> evaluations = all<Evaluated>();
  const checkpoint::Manifest manifest = kept();
  for (const std::int64_t step : checkpoint::list_steps(folder_).value()) disk_.remove(folder_.manifest(step)).value();
  events_.events.clear();
  ahead_ = true;
  ASSERT_TRUE(process(sets, traced()).ok());
  EXPECT_EQ(order, "1 2 told 1 3 told 2 told 3 4 told 4 saved 4 5 6 told 5 told 6 7 told 7 saved 7 ");
  EXPECT_EQ(all<StepEnded>(), steps);
  EXPECT_EQ(all<Evaluated>(), evaluations);
  EXPECT_EQ(kept().chunks, manifest.chunks);
  EXPECT_EQ(to_json(kept().extra), to_json(manifest.extra));
}

// An evaluation starts the next rows before the loss of the current ones is read, and no more than these.
TEST_F(TrainerAhead, evaluates_the_next_rows_before_the_loss_of_the_last_is_read) {
  const std::vector<std::string> sets{"train.steps=3", "train.evaluate.every=2", "train.evaluate.batches=2"};
  ASSERT_TRUE(process(sets).ok());
  const std::vector<Evaluated> expected = all<Evaluated>();
  ASSERT_EQ(expected.size(), 2u);
  EXPECT_EQ(expected[0].labels, 8);
  EXPECT_EQ(expected[1].labels, 12) << "of three batches";
  for (const std::int64_t step : checkpoint::list_steps(folder_).value()) disk_.remove(folder_.manifest(step)).value();
  events_.events.clear();
  ahead_ = true;
  ASSERT_TRUE(process(sets).ok());
  EXPECT_EQ(all<Evaluated>(), expected);
  EXPECT_EQ(in_flight_.most.at("evaluate"), 2);
  EXPECT_EQ(in_flight_.now.at("evaluate"), 0) << "all were waited for";
}

// A killed run has reported one step less, and goes on from its checkpoint to the same end.
TEST_F(TrainerAhead, a_kill_takes_back_what_was_not_told) {
  ahead_ = true;
  killed_at(7, {"train.steps=9"});
  EXPECT_EQ(all<StepEnded>().back().step, 5) << "6 had been asked for";
  ASSERT_TRUE(process({"train.steps=9"}).ok());
  const std::vector<StepEnded> gone_on = canonical_steps(events_.events);
  for (const std::int64_t step : checkpoint::list_steps(folder_).value()) disk_.remove(folder_.manifest(step)).value();
  events_.events.clear();
  ASSERT_TRUE(process({"train.steps=9"}).ok());
  EXPECT_EQ(gone_on.size(), 9u);
  EXPECT_EQ(gone_on, canonical_steps(events_.events));
}

// The step that diverges is the last one reported.
TEST_F(TrainerAhead, a_divergence_ends_it_at_its_step) {
  ahead_ = true;
  const Result<TrainOutcome> outcome = process({"train.steps=40", "train.optimizer.rate=1e6"});
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_EQ(outcome->ending, Ending::diverged);
  EXPECT_EQ(outcome->state.step, all<StepEnded>().back().step);
  EXPECT_FALSE(outcome->saved);
}

}  // namespace
}  // namespace systole
