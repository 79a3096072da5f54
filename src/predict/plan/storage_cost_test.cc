#include "predict/plan/storage_cost.h"

#include <gtest/gtest.h>

#include "predict/plan/offer_storages.h"
#include "predict/plan/search.h"
#include "predict/plan/testing/tiny_workload.h"

namespace systole {
namespace {

constexpr DollarsPerHour kDear(2.0), kCheap(0.5);

TEST(StorageCost, AStepTakesTheLongerOfComputingAndItsRows) {
  const OfferedStorage slow{.price = kCheap, .rows = Seconds(2.0)};
  const StorageWish wish{.steps = 3600};
  WithStorage with = with_best_storage({slow}, Seconds(1.0), DollarsPerHour(4.0), wish);
  EXPECT_DOUBLE_EQ(with.step.count(), 2.0);
  EXPECT_DOUBLE_EQ(with.dollars->count(), 2 * 4.5) << "two hours of both";
  with = with_best_storage({slow}, Seconds(3.0), DollarsPerHour(4.0), wish);
  EXPECT_DOUBLE_EQ(with.step.count(), 3.0) << "rows are read ahead";
  OfferedStorage held = slow;
  held.read = 0.25;
  EXPECT_DOUBLE_EQ(with_best_storage({held}, Seconds(1.0), kDear, wish).step.count(), 1.25) << "one epoch of four";
}

TEST(StorageCost, CheckpointsStopTrainingOrHaveToBeWrittenInTime) {
  const auto step = [](OfferedStorage storage) {
    storage.price = kCheap;
    return with_best_storage({storage}, Seconds(1.0), kDear, {}).step.count();
  };
  EXPECT_DOUBLE_EQ(step({.stall = Seconds(0.1)}), 1.1);
  EXPECT_DOUBLE_EQ(step({.stall_share = 0.1}), 1.1);
  EXPECT_DOUBLE_EQ(step({.saving = Seconds(0.9)}), 1.0) << "beside training";
  EXPECT_DOUBLE_EQ(step({.saving = Seconds(1.5)}), 1.5) << "the next is due before it is written";
}

TEST(StorageCost, TheChoiceFollowsTheWish) {
  const std::vector<OfferedStorage> storages = {{.price = kCheap, .rows = Seconds(2.0)}, {.price = kDear}};
  const auto chosen = [&](double price, StorageWish wish) {
    return with_best_storage(storages, Seconds(1.0), DollarsPerHour(price), wish).storage;
  };
  EXPECT_EQ(chosen(10, {}), 1U) << "the fastest";
  EXPECT_EQ(chosen(0.2, {.by_dollars = true}), 0U) << "cheap devices wait cheaply";
  EXPECT_EQ(chosen(10, {.by_dollars = true}), 1U) << "dear devices do not";
  EXPECT_EQ(chosen(0.2, {.by_dollars = true, .deadline = Seconds(1.5)}), 1U);
  EXPECT_EQ(chosen(10, {.steps = 3600, .budget = Dollars(12.5)}), 1U);
  EXPECT_FALSE(
      with_best_storage(storages, Seconds(1.0), DollarsPerHour(10), {.steps = 3600, .budget = Dollars(11)}).within);
}

// Unknown is not zero: devices without a price are in no budget.
TEST(StorageCost, AnUnknownPriceIsInNoBudget) {
  for (const StorageWish& wish : {StorageWish{.by_dollars = true}, StorageWish{.budget = Dollars(1)}}) {
    const WithStorage unknown = with_best_storage({{.price = kDear}}, Seconds(1.0), std::nullopt, wish);
    EXPECT_FALSE(unknown.within);
    EXPECT_FALSE(unknown.dollars);
  }
}

TEST(StorageCost, OnlyStoragesThatAreBestOfSomeStepAreLookedAt) {
  const std::vector<OfferedStorage> storages = {{.price = kCheap, .rows = Seconds(2.0)},
                                                {.price = kDear, .rows = Seconds(3.0)},
                                                {.price = kDear, .rows = Seconds(1.0)},
                                                {.price = kDear, .rows = Seconds(1.0)}};
  const std::vector<OfferedStorage> worth = worth_looking_at(storages);
  ASSERT_EQ(worth.size(), 2U);
  EXPECT_EQ(worth[0].rows, Seconds(2.0));
  EXPECT_EQ(worth[1].rows, Seconds(1.0));
}

HardwareOption offered(const char* chip, double price) {
  ClusterOptions options;
  options.devices = 1;
  HardwareOption offer{
      chip, cluster_of(*catalog().find(chip).value(), options).value(), {}, builtin_stacks()[0], DollarsPerHour(price)};
  offer.stack.step = 0, offer.stack.launch = 0;  // a tiny model's step is else the same on every chip
  return offer;
}

// A fast chip that starves on the cheap storage, a slow one that the cheap storage feeds: the fast chip is the cheaper
// of the two without storage, and so the choice of those who choose the chip first. Together the slow one wins, by less
// dollars than the fast one has with either storage.
TEST(StorageCost, TheJointChoiceBeatsTheBestOfEach) {
  const Composer composer(tiny_workload(kTinyModels[1], 8), target_of_accelerators());
  SearchRequest request{.offered = {offered("h100", 10), offered("a100", 5)}, .objective = PlanObjective::cheapest};
  request.best = 1;
  SearchRequest alone = request;
  const auto step_on = [&](std::size_t offer) {
    alone.offered = {request.offered[offer]};
    return search(composer, alone).best.at(0).step.seconds;
  };
  const double fast = step_on(0), slow = step_on(1);
  ASSERT_LT(fast, slow);
  request.offered[0].price = DollarsPerHour(10 * slow / fast * 0.9);  // a tenth cheaper a step than the slow one at 10
  request.offered[1].price = DollarsPerHour(10);
  const SearchResult apart = search(composer, request);
  ASSERT_EQ(apart.best.at(0).offer, 0U) << "chosen by itself, the fast chip is the cheapest";

  for (HardwareOption& offer : request.offered)
    offer.storages = {{.price = DollarsPerHour(0.1), .rows = Seconds(slow)}, {.price = DollarsPerHour(8)}};
  const SearchResult joint = search(composer, request);
  EXPECT_EQ(joint.best.at(0).offer, 1U);
  EXPECT_EQ(joint.best.at(0).storage, 0U);
  double least_of_fast = 1e9;
  for (std::size_t s = 0; s < 2; ++s) {
    SearchRequest one = request;
    one.offered = {request.offered[0]};
    one.offered[0].storages = {request.offered[0].storages[s]};
    least_of_fast = std::min(least_of_fast, search(composer, one).best.at(0).dollars->count());
  }
  EXPECT_LT(joint.best.at(0).dollars->count(), least_of_fast);
  EXPECT_NEAR(joint.best.at(0).dollars->count(), 10.1 * slow / 3600, 1e-12);

  // The search that skips most candidates finds what the exhaustive one does.
  SearchRequest all = request;
  all.exhaustive = true;
  const SearchResult every = search(composer, all);
  EXPECT_EQ(every.best.at(0).candidate, joint.best.at(0).candidate);
  EXPECT_EQ(*every.best.at(0).dollars, *joint.best.at(0).dollars);
}

// A new volume has room for the rows, the checkpoints that are kept beside them, and the one that is being written.
TEST(StorageCost, CheckpointsBesideTheRowsNeedRoom) {
  Workload workload = tiny_workload(kTinyModels[1], 8);
  workload.volumes = {{"/data", {.kind = VolumeSpec::Kind::cheapest}}, {"/runs", {}}};
  workload.checkpoint.keep = 2;
  workload.checkpoint.every.steps = 10;
  const auto needed = [&](const char* folder) {
    workload.checkpoint.folder = folder;
    return needed_in(workload, "/data", 10 * kGiB, 5 * kGiB);
  };
  EXPECT_EQ(needed("/runs/checkpoints"), 10 * kGiB);
  EXPECT_EQ(needed("/data/checkpoints"), 25 * kGiB);
  workload.checkpoint.best = true;
  EXPECT_EQ(needed("/data/checkpoints"), 30 * kGiB);
  EXPECT_EQ(needed_in(workload, "/data", std::nullopt, 5 * kGiB), std::nullopt);
  EXPECT_EQ(needed("file:///data/checkpoints"), 30 * kGiB);
  EXPECT_EQ(needed("gs://bucket/checkpoints"), 10 * kGiB);
  workload.folder = "/data/runs";
  EXPECT_EQ(needed("gs://bucket/checkpoints"), 10 * kGiB) << "not below the run's folder";
  EXPECT_EQ(needed("checkpoints"), 30 * kGiB);
  workload.checkpoint.every = {};
  EXPECT_EQ(needed("checkpoints"), 15 * kGiB) << "the last state is kept";
  workload.checkpoint.every.steps = 10;
  workload.checkpoint.keep_every = 100;
  EXPECT_EQ(needed("/data/checkpoints"), std::nullopt) << "ever more of them";
}

// Where all wait for their rows alike, the cheaper hardware is taken.
TEST(StorageCost, OfEqualTimeTheCheaperWins) {
  const Composer composer(tiny_workload(kTinyModels[1], 8), target_of_accelerators());
  SearchRequest request{.offered = {offered("h100", 10), offered("a100", 5)}};
  request.best = 1;
  EXPECT_EQ(search(composer, request).best.at(0).offer, 0U);
  for (HardwareOption& offer : request.offered) offer.storages = {{.price = kCheap, .rows = Seconds(100.0)}};
  const SearchResult found = search(composer, request);
  EXPECT_EQ(found.best.at(0).offer, 1U);
  EXPECT_EQ(found.best.at(0).total, Seconds(100.0));
}

}  // namespace
}  // namespace systole
