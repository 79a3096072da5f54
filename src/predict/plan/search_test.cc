#include "predict/plan/search.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "predict/plan/bounds.h"
#include "predict/plan/testing/tiny_workload.h"

namespace systole {
namespace {

HardwareOption offered(const char* chip, std::int64_t devices, std::optional<double> price = std::nullopt) {
  ClusterOptions options;
  options.devices = devices;
  HardwareOption offer{fmt::format("{} x {}", devices, chip),
                       cluster_of(*catalog().find(chip).value(), options).value(),
                       {},
                       builtin_stacks()[0],
                       std::nullopt};
  if (price) offer.price = DollarsPerHour(*price);
  return offer;
}

void expect_same(const std::vector<Estimated>& a, const std::vector<Estimated>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i].step.seconds, b[i].step.seconds, 1e-9 * b[i].step.seconds) << i;
    EXPECT_EQ(a[i].memory.total(), b[i].memory.total())
        << i << ": " << to_string(a[i].candidate) << " | " << to_string(b[i].candidate);
  }
}

std::int64_t sum_of(const SearchCounts& c) {
  return c.over_memory_by_bound + c.over_memory_composed + c.over_memory + c.unpriced + c.over_limit + c.impossible +
         c.computed + c.left;
}

// Pruning loses nothing: the first results are the best of all.
TEST(Search, pruned_is_exhaustive) {
  for (const PlanObjective objective : {PlanObjective::fastest, PlanObjective::cheapest}) {
    const Composer composer(tiny_workload(kTinyModels[1], 2), target_of_accelerators());
    SearchRequest request{.offered = {offered("h100", 2, 10), offered("a100", 2, 3)}};
    request.objective = objective;
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
    std::printf("NOTE %ld candidates, %ld of them composed, %ld made\n", all.counts.candidates, pruned.counts.composed,
                pruned.counts.computed + pruned.counts.over_memory);
    ASSERT_EQ(all.best.size(), 4u);
    expect_same(pruned.best, all.best);
    EXPECT_EQ(sum_of(all.counts), all.counts.candidates);
    EXPECT_EQ(sum_of(pruned.counts), pruned.counts.candidates);
    EXPECT_GT(all.counts.over_memory, 0);
    EXPECT_LT(pruned.counts.computed + pruned.counts.over_memory, all.counts.candidates / 2);
    EXPECT_EQ(all.counts.computed + all.counts.over_memory, all.counts.candidates);
    request.exhaustive = false;
    request.threads = 1;
    expect_same(search(composer, request).best, pruned.best);
  }
}

// Layouts of an offer that cannot be the choice are counted like those of any other.
TEST(Search, counts_the_layouts_of_all_offers) {
  const Composer composer(tiny_workload(kTinyModels[1], 2), target_of_accelerators());
  SearchRequest one{.offered = {offered("h100", 2, 10)}};
  one.best = 1;
  SearchRequest three = one;
  three.offered.push_back(offered("a100", 2, 3));
  three.offered.push_back(offered("a100", 1, 3));
  SearchRequest alone{.offered = {offered("a100", 1, 3)}};
  alone.best = 1;
  const std::int64_t of_two = search(composer, one).counts.candidates,
                     of_one = search(composer, alone).counts.candidates;
  const SearchCounts all = search(composer, three).counts;
  EXPECT_EQ(all.candidates, 2 * of_two + of_one);
  EXPECT_EQ(sum_of(all), all.candidates);
}

TEST(Search, may_leave_pipelines_out) {
  const Composer composer(tiny_workload(kTinyModels[1], 4), target_of_accelerators());
  SearchRequest request{.offered = {offered("h100", 4, 10)}};
  request.exhaustive = true;
  const auto staged = [&] {
    const SearchResult found = search(composer, request);
    return std::ranges::count_if(found.best, [](const Estimated& e) { return e.candidate.staged(); });
  };
  request.best = 1000;
  EXPECT_GT(staged(), 0);
  request.pipelines = false;
  EXPECT_EQ(staged(), 0);
}

// Two stacks of layers: a pipeline is an answer where memory allows nothing else.
TEST(Search, pipelines_of_several_stacks_are_looked_at_where_nothing_else_fits) {
  SearchRequest request{.offered = {offered("h100", 2)}};
  request.best = 3;
  const Composer composer(tiny_workload(kTinyModels[6], 4), target_of_accelerators());
  const SearchResult found = search(composer, request);
  EXPECT_TRUE(found.counts.without_pipelines);
  ASSERT_EQ(found.best.size(), 3U);
  for (const Estimated& e : found.best) EXPECT_FALSE(e.candidate.staged());
  // One row, one head: nothing else can be sharded.
  const Composer uncut(tiny_workload("family: t5, layers: 4, width: 32, heads: 1, mlp: 63, context: 8, "
                                     "target_context: 8, vocabulary: 289",
                                     1),
                       target_of_accelerators());
  const SearchResult staged = search(uncut, request);
  EXPECT_FALSE(staged.counts.without_pipelines);
  ASSERT_FALSE(staged.best.empty());
  EXPECT_TRUE(staged.best[0].candidate.staged());
  request.staged_stacks = false;
  EXPECT_TRUE(search(uncut, request).best.empty());
}

TEST(Search, bounds_are_below_what_they_bound) {
  const Composer composer(tiny_workload(kTinyModels[0], 4), target_of_accelerators());
  const Bounds bounds(composer);
  const bool whole = std::getenv("SYSTOLE_TEST_LONG") != nullptr;
  SearchRequest request{
      .offered = {offered("h100", whole ? 4 : 2), offered("v6e", 2)}, .best = 100'000, .exhaustive = true};
  for (HardwareOption& offer : request.offered)  // leaves a tiny model's step nothing but work
    offer.stack.launch = offer.stack.step = offer.stack.hop = offer.stack.stall = 0;
  const SearchResult all = search(composer, request);
  ASSERT_GT(all.best.size(), 50u);
  double nearest = 0, nearest_floor = 0;
  for (const Estimated& one : all.best) {
    const HardwareOption& offer = request.offered[one.offer];
    const double time =
        bounds.time(bounds.flops(one.candidate), offer.cluster.chip, offer.kernels, offer.stack).count();
    nearest = std::max(nearest, time / one.step.seconds);
    EXPECT_LE(time, one.step.seconds) << to_string(one.candidate);
    MemoryParts memory;
    memory.arena = bounds.arena(one.candidate, offer.kernels.half_copies);
    EXPECT_LE(device_memory(memory, offer.stack).total(), one.memory.total()) << to_string(one.candidate);
    const Result<Bounds::Floor> floor =
        bounds.floor(one.candidate, one.offer, offer.cluster, offer.kernels, offer.stack);
    ASSERT_TRUE(floor.ok()) << floor.error().message;
    EXPECT_LE(floor->time.count(), one.step.seconds) << to_string(one.candidate);
    EXPECT_LE(floor->memory, one.memory.total()) << to_string(one.candidate);
    nearest_floor = std::max(nearest_floor, floor->time.count() / one.step.seconds);
  }
  EXPECT_GT(nearest, 0.001);  // tiny models mostly move bytes
  EXPECT_GT(nearest_floor, 0.5);
}

TEST(Search, unknown_prices_never_win) {
  const Composer composer(tiny_workload(kTinyModels[0], 2), target_of_accelerators());
  SearchRequest request{.offered = {offered("h100", 2), offered("a100", 2, 5)}, .objective = PlanObjective::cheapest};
  request.best = 3;
  const SearchResult result = search(composer, request);
  ASSERT_EQ(result.best.size(), 3u);
  for (const Estimated& one : result.best) EXPECT_EQ(one.offer, 1u);
  EXPECT_GT(result.counts.unpriced, 0);
}

TEST(Search, deadline_and_budget_are_kept) {
  const Composer composer(tiny_workload(kTinyModels[0], 2), target_of_accelerators());
  SearchRequest request{.offered = {offered("h100", 2, 20), offered("a100", 1, 3)},
                        .objective = PlanObjective::cheapest};
  request.best = 5;
  request.steps = 1000;
  const SearchResult free = search(composer, request);
  request.deadline = free.best[0].total * 0.999;
  const SearchResult late = search(composer, request);
  for (const Estimated& one : late.best) EXPECT_LE(one.total, *request.deadline);
  EXPECT_GT(late.counts.over_limit, 0);
  request.deadline.reset();
  request.objective = PlanObjective::fastest;
  request.budget = *free.best[0].dollars * 1.01;
  for (const Estimated& one : search(composer, request).best) EXPECT_LE(*one.dollars, *request.budget);
}

}  // namespace
}  // namespace systole
