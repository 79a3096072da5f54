// The training loop on a small linear regression: the reference device, an in-memory disk that can fail, a fake clock.

#include "execute/train/trainer.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "execute/train/testing/trained.h"

namespace systole {
namespace {

using TrainerMetric = Trained;
using TrainerSaves = Trained;
using TrainerTime = Trained;
using TrainerNotes = Trained;
using TrainerBudget = Trained;
using TrainerDisk = Trained;

using TrainerPadding = Trained;
using TrainerReplay = Trained;
using TrainerDivergence = Trained;

TEST_F(TrainerReplay, a_step_that_is_computed_twice_is_the_same_step) {
  ASSERT_TRUE(process({"train.steps=8", "train.batch=6", "train.microbatches=2"}).ok());
  std::vector<double> once, twice;
  for (const StepEnded& step : all<StepEnded>()) once.push_back(step.loss);
  for (const std::int64_t step : checkpoint::list_steps(folder_).value()) disk_.remove(folder_.manifest(step)).value();
  events_.events.clear();
  ASSERT_TRUE(process({"train.steps=8", "train.batch=6", "train.microbatches=2", "observe.replay_check=1"}).ok());
  for (const StepEnded& step : all<StepEnded>()) twice.push_back(step.loss);
  EXPECT_EQ(once, twice);
  EXPECT_EQ(once.size(), 8u);
}

TEST_F(TrainerReplay, a_flipped_bit_is_found_at_the_steps_that_are_checked) {
  for (const std::int64_t at : {4, 3}) {
    TrainHooks hooks;
    hooks.on_gradients = [at](std::int64_t step, ReplayCheck& gradients) {
      if (step == at) gradients.change(0, [](std::span<std::byte> bytes) { bytes[2] ^= std::byte{1}; }).value();
    };
    const Result<TrainOutcome> outcome = process({"train.steps=8", "observe.replay_check=2"}, std::move(hooks));
    EXPECT_EQ(outcome.ok(), at == 3) << "step 3 is not checked";
    if (outcome.ok()) continue;
    EXPECT_TRUE(ReplayCheck::found(outcome.error()));
    EXPECT_NE(outcome.error().message.find("step 4 computed twice gives two gradient/"), std::string::npos)
        << outcome.error().message;
  }
}

// An exact step keeps sums of its logical shards in slots; each slot is checked.
TEST_F(TrainerReplay, a_flipped_bit_is_found_in_any_slot_of_an_exact_step) {
  const std::vector<std::string> exact{"train.steps=2", "train.batch=8", "train.exact=true", "observe.replay_check=1"};
  std::size_t places = 0;
  TrainHooks looks;
  looks.on_gradients = [&](std::int64_t, ReplayCheck& gradients) { places = gradients.num_gradients(); };
  ASSERT_TRUE(process(exact, std::move(looks)).ok());
  EXPECT_GT(places, 2u) << "of weights and biases";
  for (std::size_t place = 0; place < places; ++place) {
    for (const std::int64_t step : checkpoint::list_steps(folder_).value())
      disk_.remove(folder_.manifest(step)).value();
    TrainHooks hooks;
    hooks.on_gradients = [&](std::int64_t step, ReplayCheck& gradients) {
      if (step == 2) gradients.change(place, [](std::span<std::byte> bytes) { bytes[2] ^= std::byte{1}; }).value();
    };
    const Result<TrainOutcome> outcome = process(exact, std::move(hooks));
    EXPECT_TRUE(!outcome.ok() && ReplayCheck::found(outcome.error())) << place;
  }
}

// Batches of five rows in two and in four microbatches, and exact: losses and norms as in one, but for the order in
// which f32 adds up fewer than a hundred numbers. Seven held-out rows in batches of four, two and eight.
TEST_F(TrainerPadding, empty_rows_count_in_no_loss) {
  checkpoint::prepare(folder_).value();
  const auto numbers = [&](std::vector<std::string> sets) {
    for (const std::int64_t step : checkpoint::list_steps(folder_).value())
      disk_.remove(folder_.manifest(step)).value();
    events_.events.clear();
    for (const char* set : {"train.steps=6", "train.batch=5", "train.evaluate.every=2", "data.held_out_rows=7"})
      sets.insert(sets.begin(), set);
    EXPECT_TRUE(process(std::move(sets)).ok());
    std::vector<double> found;
    for (const StepEnded& step : all<StepEnded>()) found.insert(found.end(), {step.loss, step.gradient_norm});
    for (const Evaluated& evaluated : all<Evaluated>()) {
      EXPECT_EQ(evaluated.labels, 7);
      found.push_back(evaluated.loss);
    }
    return found;
  };
  const std::vector<double> whole = numbers({});
  ASSERT_EQ(whole.size(), 15u);
  for (const char* set : {"train.microbatches=2", "train.microbatches=4", "train.exact=true"}) {
    const std::vector<double> padded = numbers({set});
    ASSERT_EQ(padded.size(), whole.size()) << set;
    for (std::size_t i = 0; i < whole.size(); ++i)
      EXPECT_NEAR(padded[i], whole[i], 100 * 0x1p-23 * std::max(1.0, whole[i])) << set << ", number " << i;
  }
}

TEST_F(TrainerMetric, is_of_the_very_step_or_there_is_none) {
  ASSERT_TRUE(process({"train.steps=12", "train.evaluate.every=6"}).ok());
  const auto evaluated = all<Evaluated>();
  ASSERT_EQ(evaluated.size(), 2u);
  EXPECT_EQ(evaluated[0].step, 6);
  EXPECT_EQ(evaluated[1].step, 12);
  const std::map<std::int64_t, std::optional<double>> expected = {
      {4, std::nullopt}, {8, std::nullopt}, {12, evaluated[1].loss}};
  EXPECT_EQ(metrics(), expected);
}

TEST_F(TrainerMetric, what_is_due_together_is_evaluated_first) {
  ASSERT_TRUE(process({"train.steps=12", "train.evaluate.every=4"}).ok());
  std::map<std::int64_t, std::optional<double>> expected;
  for (const Evaluated& e : all<Evaluated>()) expected[e.step] = e.loss;
  EXPECT_EQ(expected.size(), 3u);
  EXPECT_EQ(metrics(), expected);
}

// The last evaluation takes all rows, those before it the first batch: checkpoints are compared by the same rows.
TEST_F(TrainerMetric, is_over_the_same_rows_at_the_end) {
  ASSERT_TRUE(process({"train.steps=12", "train.evaluate.batches=1"}).ok());
  const std::optional<double> at_the_end = metrics().at(12);
  EXPECT_EQ(all<Evaluated>().back().labels, 12);
  disk_.remove(folder_.manifest(12)).value();
  ASSERT_TRUE(process({"train.steps=16", "train.evaluate.batches=1", "train.evaluate.every=4"}).ok());
  ASSERT_TRUE(at_the_end);
  EXPECT_EQ(metrics().at(12), at_the_end);
}

TEST_F(TrainerMetric, the_best_of_those_that_have_one_is_kept) {
  // A learning rate so high that the loss rises in the end.
  const std::vector<std::string> sets = {"train.steps=24",
                                         "train.evaluate.every=12",
                                         "checkpoint.keep=1",
                                         "checkpoint.best=true",
                                         "checkpoint.every=4",
                                         "train.optimizer.rate=1.5",
                                         "train.divergence.policy=ignore"};
  ASSERT_TRUE(process(sets).ok());
  const auto kept = metrics();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept.begin()->first, 12);
  EXPECT_LT(kept.at(12), kept.at(24));
}

// Killed between a checkpoint and an evaluation, whose intervals do not divide each other.
TEST_F(TrainerMetric, is_the_same_after_a_kill) {
  const std::vector<std::string> sets = {"train.steps=24", "train.evaluate.every=6"};
  ASSERT_TRUE(process(sets).ok());
  const auto whole = metrics();
  EXPECT_TRUE(whole.at(12) && whole.at(24) && !whole.at(16));
  for (const std::int64_t step : checkpoint::list_steps(folder_).value()) disk_.remove(folder_.manifest(step)).value();
  killed_at(11, sets);
  killed_at(18, sets);
  ASSERT_TRUE(process(sets).ok());
  EXPECT_EQ(metrics(), whole);
}

// Without a copy of the state, a checkpoint is complete before the next step changes the state, however long writing
// takes.
TEST_F(TrainerSaves, wait_where_there_is_no_copy) {
  const std::vector<std::string> sets = {"train.steps=12", "checkpoint.asynchronous=false"};
  std::vector<std::int64_t> whole;
  TrainHooks hooks;
  hooks.in_compute = [&](std::int64_t step) {
    if (step % 4 == 1) whole = checkpoint::list_steps(folder_).value();
    if (step > 4) { EXPECT_EQ(whole.empty() ? 0 : whole.back(), (step - 1) / 4 * 4) << step; }
  };
  hooks.on_save_phase = [](checkpoint::SavePhase phase, bool begins) {
    if (phase == checkpoint::SavePhase::write && begins) std::this_thread::sleep_for(std::chrono::milliseconds(30));
  };
  killed_at(11, sets, hooks);
  const TrainOutcome resumed = process(sets, hooks).value();
  folder_.dir = "others";
  const TrainOutcome copied = process({"train.steps=12"}).value();
  EXPECT_EQ(resumed.evaluation, copied.evaluation);
}

TEST_F(TrainerTime, is_that_of_the_steps_alone) {
  ASSERT_TRUE(process({"train.time=8s", "train.evaluate.every=2", "checkpoint.every=2"}, slow()).ok());
  EXPECT_EQ(all<StepEnded>().size(), 8u);
  EXPECT_GT(clock_.now(), Seconds(100.0));
}

TEST_F(TrainerTime, the_rate_follows_it) {
  const std::vector<std::string> sets = {"train.evaluate.every=2", "train.optimizer.schedule=linear",
                                         "train.optimizer.warmup=0"};
  auto timed = sets, counted = sets;
  timed.push_back("train.time=8s");
  counted.push_back("train.steps=8");
  ASSERT_TRUE(process(timed, slow()).ok());
  std::vector<double> rates;
  for (const StepEnded& step : all<StepEnded>()) rates.push_back(step.rate);
  ASSERT_EQ(rates.size(), 8u);
  for (std::size_t s = 0; s < rates.size(); ++s)
    EXPECT_NEAR(rates[s], 0.05 * (1 - static_cast<double>(s) / 8), 1e-12) << s;
}

// Work of a killed process after its last checkpoint is redone, and counts once.
TEST_F(TrainerTime, counts_once_after_a_kill) {
  const std::vector<std::string> sets = {"train.time=8s", "checkpoint.every=4"};
  killed_at(7, sets, slow());
  clock_.advance(Seconds(1000.0));
  ASSERT_TRUE(process(sets, slow()).ok());
  const std::vector<StepEnded> steps = all<StepEnded>();
  ASSERT_EQ(steps.size(), 6u + 4u);
  EXPECT_EQ(steps.back().step, 8);
}

TEST_F(TrainerBudget, a_run_stops_before_the_step_or_evaluation_that_would_go_over_it) {
  const auto steps_within = [this](double seconds, std::vector<std::string> sets) {
    for (const std::int64_t step : checkpoint::list_steps(folder_).value())
      disk_.remove(folder_.manifest(step)).value();
    events_.events.clear();
    const Seconds until = clock_.now() + Seconds(seconds);
    budget_ = TimeBudget{Seconds(seconds), [this, until] { return until - clock_.now(); }};
    sets.emplace_back("train.steps=1000");
    const TrainOutcome outcome = process(std::move(sets), slow()).value();
    EXPECT_EQ(outcome.ending, Ending::stopped);
    EXPECT_TRUE(outcome.budget_used);
    EXPECT_TRUE(outcome.saved);
    return outcome.state.step;
  };
  // The final save counts as one step until a save was measured.
  EXPECT_EQ(steps_within(20, {"train.evaluate.every=never", "checkpoint.every=never"}), 18);
  const std::vector<Note> notes = all<Note>();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0].text, "50% of the budget is used");
  EXPECT_EQ(notes[1].text, "90% of the budget is used");
  // An evaluation of 30 s behind the fifth step ends at 35; one behind the tenth would leave no time for the save.
  EXPECT_EQ(steps_within(70, {"train.evaluate.every=5", "checkpoint.every=never"}), 9);
  EXPECT_GE(budget_->left(), Seconds());
  // The duration of a step is unknown before the first.
  EXPECT_EQ(steps_within(0.5, {"train.evaluate.every=never", "checkpoint.every=never"}), 1);
}

TEST_F(TrainerNotes, one_workload_has_its_numbers_wherever_it_runs) {
  const auto hash = [](std::vector<std::string> sets) {
    return numbers_hash(read_workload(kJob, "job.yaml", {.sets = std::move(sets)}).value());
  };
  const std::string as_it_is = hash({"train.steps=8"});
  EXPECT_EQ(hash({"train.steps=8", "objective.budget=10", "resources.price=2", "volumes={/data: corpus}",
                  "secrets={TOKEN: 'env:TOKEN'}", "gke={project: my-lab, cluster: c, location: us-central1-a}",
                  "env={A: b}", "slurm.partition=gpu", "name=other"}),
            as_it_is);
  EXPECT_NE(hash({"train.steps=8", "train.seed=7"}), as_it_is);
  EXPECT_NE(hash({"train.steps=8", "data.noise=0.2"}), as_it_is);
}

TEST_F(TrainerNotes, steps_that_wait_for_rows_are_told_once) {
  TrainHooks hooks = slow();
  hooks.on_phase = [this](const char* phase) {
    if (std::string_view(phase) == "read") clock_.advance(Seconds(3.0));
  };
  ASSERT_TRUE(process({"train.steps=20"}, hooks).ok());
  const auto notes = all<Note>();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].what, "data");
  EXPECT_EQ(notes[0].took, Seconds(15.0));
}

TEST_F(TrainerNotes, a_run_that_does_not_wait_tells_nothing) {
  ASSERT_TRUE(process({"train.steps=20"}, slow()).ok());
  EXPECT_EQ(all<Note>().size(), 0u);
}

// The first save writes until the second waits for it, and three seconds longer.
TEST_F(TrainerNotes, a_save_that_waits_for_the_one_before_is_told_once) {
  std::mutex mutex;
  std::condition_variable changed;
  bool waiting = false, held = false;
  TrainHooks hooks = slow();
  hooks.on_phase = [&](const char* phase) {
    if (std::string_view(phase) != "wait") return;
    const std::lock_guard lock(mutex);
    waiting = true;
    changed.notify_all();
  };
  hooks.on_save_phase = [&](checkpoint::SavePhase phase, bool begins) {
    if (phase != checkpoint::SavePhase::write || !begins) return;
    std::unique_lock lock(mutex);
    if (std::exchange(held, true)) return;
    changed.wait(lock, [&] { return waiting; });
    clock_.advance(Seconds(3.0));
  };
  ASSERT_TRUE(process({"train.steps=16"}, hooks).ok());
  const auto notes = all<Note>();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].what, "checkpoint");
  EXPECT_EQ(notes[0].took, Seconds(3.0));
  EXPECT_NE(notes[0].text.find("the save of step 8 waited for that of step 4"), std::string::npos) << notes[0].text;
  EXPECT_EQ(metrics().size(), 4u);
}

// Eight rows with noisy targets: single losses at a third of others are normal.
TEST_F(TrainerDivergence, is_not_what_eight_rows_do_by_themselves) {
  const std::vector<std::string> sets = {"train.steps=400",     "train.batch=8",   "data.noise=0.5",
                                         "data.rows=4096",      "model.outputs=1", "train.optimizer.rate=0.01",
                                         "checkpoint.every=200"};
  const TrainOutcome outcome = process(sets).value();
  EXPECT_EQ(outcome.ending, Ending::finished) << outcome.detail;
  double lowest = 1e9, highest = 0;
  for (const StepEnded& step : all<StepEnded>()) {
    lowest = std::min(lowest, step.loss);
    highest = std::max(highest, step.loss);
  }
  EXPECT_GT(highest, 3 * lowest);
  const TrainOutcome longer = process({"train.steps=402", "train.batch=8", "data.noise=0.5", "data.rows=4096",
                                       "model.outputs=1", "train.optimizer.rate=0.01", "checkpoint.every=200"})
                                  .value();
  EXPECT_EQ(longer.state.step, 402);
  EXPECT_EQ(longer.state.trend.losses, LossTrend::kLevelSteps) << "it went on with what the checkpoint held";
}

TEST_F(TrainerDisk, a_full_one_ends_the_run_and_leaves_the_checkpoint_before) {
  ASSERT_TRUE(process({"train.steps=4"}).ok());
  const std::string before = checkpoint::load_manifest(folder_, 4)->chunks[0].hash;
  disk_.limit_space(Bytes(1));
  const Result<TrainOutcome> full = process({"train.steps=12"});
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().kind, ErrorKind::no_space);
  const std::string& said = full.error().message;
  EXPECT_NE(said.find("the checkpoint of step 8 takes 132 bytes, 0 are free"), said.npos) << said;
  EXPECT_NE(said.find("can go on from its checkpoint of step 4"), said.npos) << said;
  EXPECT_NE(full.error().hint.find("systole resume"), std::string::npos) << full.error().hint;
  const checkpoint::Restored newest = checkpoint::open_newest(folder_).value();
  EXPECT_EQ(newest.checkpoint.manifest().step, 4);
  EXPECT_TRUE(newest.rejected.empty());
  EXPECT_EQ(newest.checkpoint.manifest().chunks[0].hash, before);
  disk_.limit_space(kMiB);
  ASSERT_TRUE(process({"train.steps=12"}).ok());
  EXPECT_EQ(checkpoint::open_newest(folder_)->checkpoint.manifest().step, 12);
}

TEST_F(TrainerDisk, a_full_one_before_the_first_checkpoint) {
  checkpoint::prepare(folder_).value();
  disk_.limit_space(Bytes(1));
  const Result<TrainOutcome> full = process({"train.steps=12"});
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().kind, ErrorKind::no_space);
  EXPECT_NE(full.error().message.find("the run has no checkpoint yet"), std::string::npos) << full.error().message;
}

TEST_F(TrainerDisk, one_that_turns_read_only_ends_the_run) {
  ASSERT_TRUE(process({"train.steps=4"}).ok());
  TrainHooks hooks;
  hooks.in_compute = [this](std::int64_t step) {
    if (step == 6) disk_.inject(Fault::fails_from(disk_.changing_calls() + 1, EROFS));
  };
  const Result<TrainOutcome> refused = process({"train.steps=12"}, hooks);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::io);
  EXPECT_NE(refused.error().message.find("the checkpoint of step 8 was not saved"), std::string::npos);
  EXPECT_NE(refused.error().message.find("of step 4"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().hint.find("read-only"), std::string::npos) << refused.error().hint;
  disk_.clear_faults();
  EXPECT_EQ(checkpoint::open_newest(folder_)->checkpoint.manifest().step, 4);
}

}  // namespace
}  // namespace systole
