// fit-is-proved: a limit one byte below the plan is refused before anything is started; a run stays within its plan.
//
// The plan is deterministic, the same in every process. So the exact limit is tested across processes, as a user would,
// and on the prepared job.

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "ground/base/clock.h"
#include "ground/base/document.h"
#include "ground/store/testing/faulty.h"
#include "laws/process_job.h"
#include "operate/observe/event_file.h"
#include "operate/observe/run_files.h"
#include "operate/run/full_disk.h"
#include "operate/run/train_run.h"

namespace systole::laws {
namespace {

// The contents of a run's folder in which nothing was started.
std::vector<std::string> left_in(const std::string& folder) {
  std::vector<std::string> names;
  if (!std::filesystem::exists(folder)) return names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename() != "lock") names.push_back(entry.path().string());
  }
  return names;
}

class FitIsProved : public ::testing::Test {
 protected:
  // With absolute paths to the job's files: this process stays in its folder.
  PlannedRun prepared(const std::vector<std::string>& sets = {}) {
    WorkloadOptions options;
    options.sets = sets;
    options.sets.push_back("data.train.files=" + shop_.path("text.txt"));
    options.sets.push_back("data.folder=" + shop_.path("data"));
    const Workload workload = load_workload(shop_.path("job.yaml"), options).value();
    PrepareOptions preparing;
#ifndef SYSTOLE_HAS_CPU
    preparing.backend = "reference";
#endif
    return prepare(workload, preparing, *clock_).value();
  }

  Result<TrainOutcome> run(PlannedRun& job, Bytes limit, const std::string& name) {
    job.plan.memory.limit = limit;
    RunFolder folder = claim_folder(shop_.path(name), ResumeMode::anew).value();
    TimeLedger ledger(*clock_, Category::startup);
    RunRequest request;
    request.folder = folder.path;
    EventList events;
    return run_job(job, folder, request, *clock_, ledger, events);
  }

  const Workshop shop_;
  const std::unique_ptr<Clock> clock_ = real_clock();
};

TEST_F(FitIsProved, one_byte_less_is_refused_before_anything_is_started) {
  PlannedRun job = prepared({"train.steps=3"});
  const Bytes total = job.memory.total();
  const Result<TrainOutcome> refused = run(job, total - Bytes(1), "less");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::does_not_fit);
  EXPECT_NE(refused.error().message.find("short by 1"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("largest:"), std::string::npos) << refused.error().message;
  EXPECT_FALSE(refused.error().hint.empty());
  EXPECT_EQ(left_in(shop_.path("less")), std::vector<std::string>{});
  const Result<TrainOutcome> accepted = run(job, total, "whole");
  ASSERT_TRUE(accepted.ok()) << to_string(accepted.error());
  EXPECT_EQ(accepted->state.step, 3);
  EXPECT_EQ(job.executor->arena(), job.memory.arena);
}

std::int64_t planned_total(const Workshop& shop) {
  const Captured planned = shop.systole({"plan", "job.yaml", "--json"});
  CHECK(planned.exit.code == 0, "{}", planned.err);
  return parse_json(planned.out, "plan").value().find("total_bytes")->as_int(0).value();
}

// The first process builds the data, the others find it.
TEST_F(FitIsProved, every_process_plans_the_same) {
  std::set<std::int64_t> totals;
  for (int i = 0; i < 5; ++i) totals.insert(planned_total(shop_));
  totals.insert(prepared().memory.total().count());
  EXPECT_EQ(totals.size(), 1u);
}

TEST_F(FitIsProved, one_byte_less_than_another_process_planned_is_refused) {
  const std::int64_t total = planned_total(shop_);
  const Captured refused = shop_.systole({"plan", "job.yaml", "--memory", std::to_string(total - 1)});
  EXPECT_EQ(refused.exit.code, 1) << refused.out;
  EXPECT_NE(refused.err.find("short by 1)"), std::string::npos) << refused.err;
  EXPECT_EQ(shop_.systole({"plan", "job.yaml", "--memory", std::to_string(total)}).exit.code, 0);
}

// A run needs disk space for the checkpoints that it will keep, and reports this before its first step.
TEST_F(FitIsProved, a_disk_too_small_for_the_checkpoints_is_refused_before_anything_is_started) {
  const std::pair<int, std::vector<std::string>> cases[] = {
      {3, {"train.steps=3"}},
      {8, {"train.steps=50", "checkpoint.every=5", "checkpoint.keep_every=10"}},
      {4,
       {"train.exact=false", "train.steps=null", "train.time=1h", "checkpoint.every=5", "checkpoint.keep_every=10"}}};
  for (const auto& [checkpoints, sets] : cases) {
    PlannedRun job = prepared(sets);
    RunFolder folder = claim_folder(shop_.path(fmt::format("small-{}", checkpoints)), ResumeMode::anew).value();
    TimeLedger ledger(*clock_, Category::startup);
    RunRequest request;
    request.folder = folder.path;
    request.disk = std::make_shared<FullDisk>();
    request.disk->fill();
    EventList events;
    const Result<TrainOutcome> refused = run_job(job, folder, request, *clock_, ledger, events);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::does_not_fit);
    EXPECT_NE(refused.error().message.find(fmt::format("checkpoints do not fit: {} of", checkpoints)),
              std::string::npos)
        << refused.error().message;
    EXPECT_FALSE(refused.error().hint.empty());
    EXPECT_TRUE(events.events.empty());
    EXPECT_FALSE(folder.store->exists("plan.json").value());
  }
}

// Reports the first failure, not its consequences.
TEST_F(FitIsProved, a_disk_that_fills_up_is_told_by_the_checkpoint_that_it_failed) {
  PlannedRun job = prepared({"train.steps=6", "checkpoint.every=2"});
  RunFolder folder = claim_folder(shop_.path("full"), ResumeMode::anew).value();
  auto disk = std::make_unique<FaultyStore>();
  FaultyStore& faulty = *disk;
  folder.store = std::move(disk);
  TimeLedger ledger(*clock_, Category::startup);
  RunRequest request;
  request.folder = folder.path;
  request.hooks.on_save_phase = [&faulty](checkpoint::SavePhase phase, bool begins) {
    if (phase == checkpoint::SavePhase::sweep && !begins)
      faulty.inject(Fault::fails_from(faulty.changing_calls() + 1, ENOSPC));
  };
  const std::unique_ptr<EventFile> events = EventFile::open(faulty, next_event_file(faulty).value()).value();
  const Result<TrainOutcome> full = run_job(job, folder, request, *clock_, ledger, *events);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().kind, ErrorKind::no_space);
  EXPECT_NE(full.error().message.find("checkpoint of step 4"), std::string::npos) << full.error().message;
  EXPECT_NE(full.error().message.find("can go on from its checkpoint of step 2"), std::string::npos)
      << full.error().message;
}

TEST_F(FitIsProved, the_owners_sum_up_to_the_total) {
  const PlannedRun job = prepared();
  Bytes sum;
  for (const auto& [owner, bytes] : job.plan.memory.by_owner) {
    EXPECT_GT(bytes.count(), 0) << owner;
    sum += bytes;
  }
  EXPECT_EQ(sum, job.memory.total());
  EXPECT_EQ(job.memory.arena, job.job.program->arena);
}

// Planned memory is the maximum over all schedules: here held-out batches of 64 rows beside training batches of one.
TEST_F(FitIsProved, an_evaluation_batch_that_does_not_fit_is_refused) {
  PlannedRun job = prepared({"train.batch=1", "train.microbatches=1"});
  const Bytes training = job.memory.total();
  const Device& device = *job.machine.device;
  const auto workspace = [&device](const Graph& g, const GraphNode& n) { return device.workspace(g, n); };
  const Model& model = *job.job.model;
  job.executor.reset();
  job.job.evaluation_rows = 64;
  job.job.program = std::make_unique<const Program>(
      training_program("tiny", model.loss({1, model.context()}, true), model.loss({64, model.context()}, false),
                       Mesh::make({}).value(), strategy_of(job.workload), device.target(), workspace));
  job.executor = Executor::prepare(*job.job.program, *job.machine.device).value();
  job.memory = plan_memory(*job.job.program, job.outside);
  ASSERT_GT(job.memory.total(), training + Bytes(100'000));
  const Result<TrainOutcome> refused = run(job, training, "evaluates");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::does_not_fit);
  EXPECT_EQ(left_in(shop_.path("evaluates")), std::vector<std::string>{});
}

// The stages of a pipeline need different memory: the planner checks all of them.
TEST_F(FitIsProved, a_stage_that_does_not_fit_is_refused_by_number) {
  for (const auto& [layers, larger] : {std::pair("[1, 3]", 1), std::pair("[3, 1]", 0)}) {
    PlannedRun job = prepared({"train.exact=false", "mesh={pipe: 2}", "model.layers=4", "train.microbatches=2",
                               fmt::format("pipeline.layers={}", layers)});
    ASSERT_EQ(job.other_stages.size(), 1u);
    const Bytes most = larger == 0 ? job.memory.total() : job.other_stages[0].memory.total();
    ASSERT_EQ(most, std::max(job.memory.total(), job.other_stages[0].memory.total())) << layers;
    job.plan.memory.limit = most;
    EXPECT_TRUE(fits(job).ok());
    job.plan.memory.limit = most - Bytes(1);
    const Status refused = fits(job);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::does_not_fit);
    EXPECT_NE(refused.error().message.find(fmt::format("does not fit on stage {} of 2: needs", larger)),
              std::string::npos)
        << refused.error().message;
  }
}

TEST_F(FitIsProved, the_program_refuses_with_ways_to_fit) {
  const Captured refused = shop_.systole({"run", "job.yaml", "--folder", "run", "--memory", "4MiB"});
  EXPECT_EQ(refused.exit.code, 1) << refused.err;
  EXPECT_NE(refused.err.find("does not fit: needs"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("nothing was started"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("hint:"), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(shop_.path("run/plan.json")));
  EXPECT_FALSE(std::filesystem::exists(shop_.path("run/checkpoints/manifests")));
  // The same folder is usable once there is enough memory.
  const Captured done =
      shop_.systole({"run", "job.yaml", "--folder", "run", "--set", "train.steps=2", "--memory", "1GiB"});
  EXPECT_EQ(done.exit.code, 0) << done.err;
}

}  // namespace
}  // namespace systole::laws
