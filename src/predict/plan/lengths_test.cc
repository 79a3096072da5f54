// Rows of several lengths (data.buckets) in a search: what is priced are the schedules that run, and nothing is lost.

#include <gtest/gtest.h>

#include "describe/program/collectives_of.h"
#include "predict/plan/bounds.h"
#include "predict/plan/estimated.h"
#include "predict/plan/mean_step.h"
#include "predict/plan/testing/tiny_workload.h"

namespace systole {
namespace {

const std::vector<PlannedShape> kShapes = {
    {.length = 4, .rows = 8, .epoch_steps = 3, .epoch_tokens = 90},
    {.length = 8, .rows = 4, .epoch_steps = 2, .epoch_tokens = 50},
    {.length = 16, .rows = 2, .epoch_steps = 5, .epoch_tokens = 140},
};
constexpr double kShares[] = {0.3, 0.2, 0.5};

Workload asked(const char* model = kTinyModels[1]) {
  Workload workload = tiny_workload(model, 2);
  workload.data.packing = false;
  workload.data.buckets = BucketsSpec{.edges = {4, 8}};
  return workload;
}

HardwareOption offered(const char* chip, std::int64_t devices) {
  ClusterOptions options;
  options.devices = devices;
  HardwareOption offer{fmt::format("{} x {}", devices, chip),
                       cluster_of(*catalog().find(chip).value(), options).value(),
                       {},
                       builtin_stacks()[0],
                       std::nullopt};
  for (double* cost : {&offer.stack.launch, &offer.stack.step, &offer.stack.hop, &offer.stack.stall})
    *cost = 0;  // leaves a tiny model's step nothing but work, which differs by length
  return offer;
}

double step_of(const Workload& workload, const Candidate& candidate, std::int64_t length, const HardwareOption& on) {
  const std::vector<std::int64_t> lengths{length};
  const CandidatePrograms programs =
      programs_of(with_length(workload, length), candidate, target_of_accelerators(), true, lengths).value();
  return step_time(step_parts(programs.step, on.cluster, on.kernels), on.stack).seconds;
}

TEST(Lengths, a_step_is_the_mean_and_its_parts_are_the_schedules_that_run) {
  const Composer composer(asked(), target_of_accelerators(), 2, kShapes);
  const HardwareOption on = offered("h100", 2);
  Candidate candidate;
  candidate.fsdp = 2;
  const Estimated e = estimate_candidate(composer.asked(), composer, candidate, on, {}).value();
  double mean = 0;
  Bytes most;
  const CandidatePrograms all =
      programs_of(asked(), candidate, target_of_accelerators(), true, std::vector<std::int64_t>{4, 8, 16}).value();
  const Program& together = *all.stages.front();
  for (std::size_t s = 0; s < kShapes.size(); ++s) {
    const std::vector<std::int64_t> length{kShapes[s].length};
    const CandidatePrograms one =
        programs_of(with_length(asked(), length[0]), candidate, target_of_accelerators(), true, length).value();
    const Program& program = *one.stages.front();
    const Schedule &own = program.schedule_named("train"),
                   &runs = together.schedule_named(s + 1 == kShapes.size() ? "train" : train_schedule(length[0]));
    EXPECT_EQ(work_of(program, own).flops, work_of(together, runs).flops) << length[0];
    EXPECT_EQ(work_of(program, own).read, work_of(together, runs).read) << length[0];
    EXPECT_EQ(bytes_sent(program, own, 0), bytes_sent(together, runs, 0)) << length[0];
    EXPECT_DOUBLE_EQ(e.lengths[s].count(), step_of(asked(), candidate, length[0], on));
    mean += kShares[s] * e.lengths[s].count();
    most = std::max(most, device_memory(program, on.kernels, on.stack).total());
    EXPECT_NEAR(program.arena / together.arena, 1, s + 1 == kShapes.size() ? 0.05 : 1) << "one arena, of the largest";
  }
  EXPECT_NEAR(e.step.seconds, mean, 1e-12 * mean);
  EXPECT_NE(e.lengths[0], e.lengths[2]);
  EXPECT_EQ(e.memory.total(), most);
}

TEST(Lengths, pruned_is_exhaustive) {
  const Composer composer(asked(), target_of_accelerators(), 2, kShapes);
  SearchRequest request{.offered = {offered("h100", 2), offered("a100", 2)}};
  request.best = 4;
  for (HardwareOption& offer : request.offered) {  // some candidates do not fit
    offer.stack.context = 1;
    offer.stack.fragments = 0.05;
    const auto usable = static_cast<double>((kGiB + kKiB * 2340).count());
    offer.cluster.chip.capacity = Bytes(static_cast<std::int64_t>(usable / kUsableMemory));
  }
  const SearchResult pruned = search(composer, request);
  request.exhaustive = true;
  const SearchResult all = search(composer, request);
  ASSERT_EQ(pruned.best.size(), 4u);
  ASSERT_EQ(all.best.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(pruned.best[i].step.seconds, all.best[i].step.seconds, 1e-9 * all.best[i].step.seconds) << i;
    EXPECT_EQ(pruned.best[i].memory.total(), all.best[i].memory.total()) << i;
  }
  EXPECT_GT(all.counts.over_memory, 0);
  EXPECT_EQ(all.counts.computed + all.counts.over_memory, all.counts.candidates) << "none is impossible";
  EXPECT_LT(pruned.counts.computed + pruned.counts.over_memory, all.counts.candidates / 2);
}

void expect_bounds_below(const char* model) {
  const Composer composer(asked(model), target_of_accelerators(), 2, kShapes);
  const Bounds bounds(composer);
  const SearchRequest request{.offered = {offered("h100", 2), offered("v6e", 2)}, .best = 100'000, .exhaustive = true};
  const SearchResult all = search(composer, request);
  ASSERT_GT(all.best.size(), 20u);
  double nearest = 0;
  for (const Estimated& one : all.best) {
    const HardwareOption& offer = request.offered[one.offer];
    EXPECT_FALSE(one.candidate.staged() || one.candidate.context > 1) << to_string(one.candidate);
    const double time =
        bounds.time(bounds.flops(one.candidate), offer.cluster.chip, offer.kernels, offer.stack).count();
    EXPECT_LE(time, one.step.seconds) << to_string(one.candidate);
    MemoryParts memory;
    memory.arena = bounds.arena(one.candidate, offer.kernels.half_copies);
    EXPECT_LE(device_memory(memory, offer.stack).total(), one.memory.total()) << to_string(one.candidate);
    const Bounds::Floor floor =
        bounds.floor(one.candidate, one.offer, offer.cluster, offer.kernels, offer.stack).value();
    EXPECT_LE(floor.time.count(), one.step.seconds) << to_string(one.candidate);
    EXPECT_LE(floor.memory, one.memory.total()) << to_string(one.candidate);
    nearest = std::max(nearest, floor.time.count() / one.step.seconds);
  }
  EXPECT_GT(nearest, 0.5);
}

TEST(Lengths, bounds_are_below_what_they_bound) { expect_bounds_below(kTinyModels[1]); }

// Its experts have the capacity of a row of the context in rows of every length.
TEST(Lengths, bounds_are_below_what_they_bound_of_experts) {
  expect_bounds_below(
      "family: llama, layers: 4, width: 48, heads: 6, kv_heads: 2, mlp: 24, context: 16, vocabulary: 288, moe: { "
      "experts: 4, top_k: 2 }");
}

// One length, that of the context, is the plan without lengths.
TEST(Lengths, one_length_is_none) {
  const Composer one(asked(), target_of_accelerators(), 2, {kShapes.back()});
  const Composer none(tiny_workload(kTinyModels[1], 2), target_of_accelerators(), 2);
  SearchRequest request{.offered = {offered("h100", 2)}};
  request.best = 3;
  request.pipelines = false;
  const SearchResult a = search(one, request), b = search(none, request);
  ASSERT_EQ(a.best.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(a.best[i].candidate, b.best[i].candidate);
    EXPECT_EQ(a.best[i].step.seconds, b.best[i].step.seconds);
    EXPECT_EQ(a.best[i].memory.total(), b.best[i].memory.total());
  }
}

TEST(Lengths, means_are_by_steps) {
  EXPECT_DOUBLE_EQ(mean_rows(kShapes), 0.3 * 8 + 0.2 * 4 + 0.5 * 2);
  EXPECT_DOUBLE_EQ(mean_tokens(kShapes), 28);
  EXPECT_EQ(lengths_words(kShapes), "4, 8 or 16 tokens");
  EXPECT_EQ(lengths_words({kShapes.data(), 1}), "4 tokens");
}

}  // namespace
}  // namespace systole
