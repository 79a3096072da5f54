// Whole or absent, with four writers: a save by many ranks is complete or not there, whichever rank dies, fails or
// wakes up late at any of its calls, in any interleaving of the ranks' calls; and every checkpoint restores on every
// other mesh. Interleavings are drawn from a seed (turns.h).
// SYSTOLE_TEST_LONG=1 tries every call of every writer. Otherwise every seventeenth is tried (late wake-ups: half of
// every twenty-ninth), starting at a call that depends on the seed and the writer.
// SYSTOLE_TEST_SEED=n sets another seed.

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>

#include "execute/checkpoint/testing/group_saves.h"

namespace systole::checkpoint {
namespace {

constexpr int kWriters = 4;
constexpr int kReaders[] = {1, 2, 3, 4, 6, 8};

bool is_long() { return std::getenv("SYSTOLE_TEST_LONG") != nullptr; }
std::uint64_t first_seed() {
  const char* text = std::getenv("SYSTOLE_TEST_SEED");
  return text && *text ? std::strtoull(text, nullptr, 10) : 1;
}

// The calls to try among 1..calls.
std::vector<std::int64_t> chosen(std::int64_t calls, std::uint64_t seed, std::int64_t every = 17) {
  std::vector<std::int64_t> list;
  const std::int64_t step = is_long() ? 1 : every;
  for (std::int64_t call = 1 + static_cast<std::int64_t>(seed) % step; call <= calls; call += step)
    list.push_back(call);
  return list;
}

// A folder with checkpoints 10 and 20, written by two ranks of an earlier generation.
std::unique_ptr<Store> store_with_history() {
  auto store = make_memory_store();
  for (const std::int64_t step : {10, 20}) {
    const TinyRanks ranks(step, 2, TinyCut::first_dim);
    const auto endings =
        group_save(*store, ranks, 1, 0, [step](int, SaveRequest& request, SaveOptions&) { request.number = step; });
    for (const auto& ending : endings) EXPECT_EQ(text_of(ending), "saved");
  }
  return store;
}

class Law {
 public:
  explicit Law(std::uint64_t seed) : random_(seed) {}

  // Checks that every checkpoint is complete and restores, each time on another mesh. Returns the newest one's step.
  std::int64_t newest_whole(Store& store) {
    const Folder folder{objects_in(store), "c"};
    std::int64_t newest = 0;
    const std::vector<std::int64_t> steps = list_steps(folder).value();
    for (const std::int64_t step : steps) {
      const auto opened = open_step(folder, step);
      EXPECT_TRUE(opened) << "checkpoint " << step << ": " << to_string(opened.error());
      if (!opened) continue;
      newest = step;
      EXPECT_EQ(verify_tiny(*opened), "");
      const int readers = kReaders[random_() % std::size(kReaders)];
      EXPECT_EQ(verify_on_ranks(*opened, readers, static_cast<TinyCut>(random_() % kTinyCuts)), "");
    }
    return newest;
  }

  // The next generation, with another number of ranks, saves and removes all leftovers.
  void expect_next_generation_saves(Store& store, std::int64_t generation = 2) {
    const TinyRanks ranks(40, kReaders[random_() % std::size(kReaders)], static_cast<TinyCut>(random_() % kTinyCuts));
    for (const auto& ending : group_save(store, ranks, random_(), generation)) EXPECT_EQ(text_of(ending), "saved");
    EXPECT_EQ(newest_whole(store), 40);
    EXPECT_EQ(files_too_many(store), std::set<std::string>());
  }

  void expect_next_save_restores(Store& store) {
    const TinyRanks ranks(50, 3, TinyCut::last_dim_reversed);
    for (const auto& ending : group_save(store, ranks, random_(), 3)) EXPECT_EQ(text_of(ending), "saved");
    const auto newest = open_newest({objects_in(store), "c"});
    EXPECT_TRUE(newest && newest->checkpoint.manifest().step == 50 && verify_tiny(newest->checkpoint).empty());
    EXPECT_EQ(files_too_many(store), std::set<std::string>());
  }

 private:
  std::mt19937_64 random_;
};

class ManyWriters : public testing::Test {
 protected:
  ManyWriters() : before_(store_with_history()), ranks_(30, kWriters, TinyCut::each_axis_a_dim) {}

  // The number of changing calls of one writer in an undisturbed save.
  std::int64_t calls_of(int writer, std::uint64_t seed) {
    FaultyStore store(*before_);
    Endings endings;
    Turns turns(store, seed);
    start_group_save(turns, ranks_, endings);
    turns.run();
    return turns.calls(writer);
  }

  std::unique_ptr<Store> before_;
  TinyRanks ranks_;
};

struct Cut {
  Unsynced mode;
  std::uint64_t seed;
};
constexpr Cut kCuts[] = {{Unsynced::lost, 0}, {Unsynced::kept, 0}, {Unsynced::torn, 1}, {Unsynced::torn, 2}};

// A power cut at any call of any writer.
TEST_F(ManyWriters, WholeOrAbsent_EveryCallIsACrashPoint) {
  const std::uint64_t seed = first_seed();
  FaultyStore counted(*before_);
  for (const auto& ending : group_save(counted, ranks_, seed)) ASSERT_EQ(text_of(ending), "saved");
  std::int64_t tried = 0, new_seen = 0, old_seen = 0;
  for (const std::int64_t call : chosen(counted.changing_calls(), seed)) {
    for (const Fault fault : {Fault::dies_before(call), Fault::dies_before(call, 5), Fault::dies_after(call)}) {
      FaultyStore store(*before_);
      store.inject(fault);
      for (const auto& ending : group_save(store, ranks_, seed)) EXPECT_TRUE(!ending || !*ending || store.crashed());
      ASSERT_TRUE(store.crashed());
      for (const Cut& cut : kCuts) {
        SCOPED_TRACE(fmt::format("seed {} call {} ({}), unsynced {} {}", seed, call, store.calls().back(),
                                 static_cast<int>(cut.mode), cut.seed));
        const auto survivor = store.survivor(cut.mode, cut.seed);
        Law law(static_cast<std::uint64_t>(tried) + seed);
        const std::int64_t step = law.newest_whole(*survivor);
        EXPECT_TRUE(step == 20 || step == 30) << step;
        (step == 30 ? new_seen : old_seen) += 1;
        law.expect_next_generation_saves(*survivor);
        ++tried;
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(new_seen, 0);
  EXPECT_GT(old_seen, 0);
  fmt::print("NOTE {} power cuts\n", tried);
}

// A save that any rank reported as done survives any later power cut.
TEST_F(ManyWriters, WhatWasReportedStays) {
  FaultyStore store(*before_);
  for (const auto& ending : group_save(store, ranks_)) ASSERT_EQ(text_of(ending), "saved");
  for (const Cut& cut : kCuts) EXPECT_EQ(Law(1).newest_whole(*store.survivor(cut.mode, cut.seed)), 30);
}

// One writer is killed at any of its calls; the others live, and their errors name it.
TEST_F(ManyWriters, WholeOrAbsent_AnyRankIsKilledAtAnyCall) {
  const std::uint64_t seed = first_seed();
  std::int64_t tried = 0, saved = 0;
  for (int victim = 0; victim < kWriters; ++victim) {
    const std::int64_t calls = calls_of(victim, seed);
    ASSERT_GT(calls, 15);
    for (const std::int64_t call : chosen(calls, seed + static_cast<std::uint64_t>(victim))) {
      for (const bool after : {false, true}) {
        SCOPED_TRACE(
            fmt::format("seed {}, rank {} dies {} its call {}", seed, victim, after ? "after" : "before", call));
        FaultyStore store(*before_);
        Endings endings;
        Turns turns(store, seed + static_cast<std::uint64_t>(call));
        start_group_save(turns, ranks_, endings);
        turns.kill(victim, call, after);
        turns.run();
        Law law(static_cast<std::uint64_t>(++tried));
        const std::int64_t step = law.newest_whole(store);
        EXPECT_TRUE(step == 20 || step == 30) << step;
        saved += step == 30;
        EXPECT_FALSE(endings[static_cast<std::size_t>(victim)]);
        for (int rank = 0; rank < kWriters; ++rank) {
          if (rank == victim) continue;
          const std::string text = text_of(endings[static_cast<std::size_t>(rank)]);
          if (text == "saved") {
            EXPECT_EQ(step, 30) << "rank " << rank;
          } else {
            EXPECT_NE(text.find(fmt::format("rank {} did not", victim)), std::string::npos) << text;
          }
        }
        law.expect_next_generation_saves(store);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(saved, 0);
  EXPECT_LT(saved, tried);
  fmt::print("NOTE {} killed, {} of these saves were whole all the same\n", tried, saved);
}

struct Refusal {
  int number;
  std::int64_t calls;
};

// One writer's disk refuses one of its calls, or all from that one on.
TEST_F(ManyWriters, WholeOrAbsent_AnyCallOfAnyRankMayFail) {
  const std::uint64_t seed = first_seed();
  std::int64_t tried = 0, failed = 0;
  for (int victim = 0; victim < kWriters; ++victim) {
    for (const std::int64_t call : chosen(calls_of(victim, seed), seed + static_cast<std::uint64_t>(victim))) {
      for (const Refusal refusal : {Refusal{EIO, 1}, Refusal{ENOSPC, 1}, Refusal{ENOSPC, 1000}}) {
        SCOPED_TRACE(fmt::format("seed {}, rank {}: errno {} at its call {}, {} times", seed, victim, refusal.number,
                                 call, refusal.calls));
        FaultyStore store(*before_);
        Endings endings;
        Turns turns(store, seed + static_cast<std::uint64_t>(call));
        start_group_save(turns, ranks_, endings);
        turns.refuse(victim, call, refusal.number, refusal.calls);
        turns.run();
        Law law(static_cast<std::uint64_t>(++tried));
        const std::int64_t step = law.newest_whole(store);
        for (const auto& ending : endings) {
          ASSERT_TRUE(ending);
          failed += ending->ok() ? 0 : 1;
          if (*ending) { EXPECT_EQ(step, 30); }
        }
        EXPECT_TRUE(step == 20 || step == 30) << step;
        law.expect_next_generation_saves(store);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(failed, 0);
  fmt::print("NOTE {} refusals\n", tried);
}

// A rank of generation 1 is stopped at any of its calls and continues while generation 2 saves, or later. Each stop is
// between the check of the claim and the action: the worst case (group.h).
TEST_F(ManyWriters, WholeOrAbsent_AnOlderGenerationWakesUpLate) {
  const std::uint64_t seed = first_seed();
  std::int64_t tried = 0, told = 0, walked_back = 0;
  for (int victim = 0; victim < kWriters; ++victim) {
    for (const std::int64_t call : chosen(calls_of(victim, seed), seed + static_cast<std::uint64_t>(victim), 29)) {
      for (const std::int64_t later : {0, 20, 60, 100000}) {
        for (const std::int64_t next_step : {25, 30, 40}) {  // an earlier step, the same, or a later one
          const bool half = (later / 20 + next_step / 10 + victim + call) % 2 == 0;
          if (!is_long() && half) continue;
          SCOPED_TRACE(fmt::format("seed {}, rank {} stops at call {}, wakes {} turns into the next save, of step {}",
                                   seed, victim, call, later, next_step));
          FaultyStore store(*before_);
          Endings endings, next_endings;
          const TinyRanks next(next_step, 3, TinyCut::first_dim);
          Turns turns(store, seed + static_cast<std::uint64_t>(call));
          start_group_save(turns, ranks_, endings);
          turns.stop(victim, call);
          turns.run();
          start_group_save(turns, next, next_endings, 2);
          turns.go_on_after(later);
          turns.run();
          turns.go_on_after(0);  // it was stopped during all of that
          turns.run();
          const auto& ending = endings[static_cast<std::size_t>(victim)];
          ASSERT_TRUE(ending) << "it ended";
          told += text_of(ending).find("generation 2 of this run has begun") != std::string::npos;
          for (const auto& other : next_endings) EXPECT_EQ(text_of(other), "saved");
          const auto newest = open_newest({objects_in(store), "c"});
          ASSERT_TRUE(newest) << to_string(newest.error());
          EXPECT_EQ(verify_tiny(newest->checkpoint), "");
          walked_back += static_cast<std::int64_t>(newest->rejected.size());
          EXPECT_GE(newest->checkpoint.manifest().step, next_step == 40 ? 40 : 20);
          if (next_step == 25) { EXPECT_EQ(newest->rejected.size(), 0U) << "of step 30 a manifest came too late"; }
          Law(static_cast<std::uint64_t>(++tried)).expect_next_save_restores(store);
          if (HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(told, 0);
  fmt::print("NOTE {} woke up late, {} were told so, {} times restoring walked back\n", tried, told, walked_back);
}

// Rank 0 of generation 1 is stopped while it puts the manifest, and wakes up when generation 2 has saved an earlier step
// and swept the chunks: its manifest must not appear. Stopped at every such call, as these are few.
TEST_F(ManyWriters, WholeOrAbsent_AManifestThatWasBegunDoesNotComeLate) {
  const std::uint64_t seed = first_seed();
  const std::int64_t calls = calls_of(0, seed);
  std::int64_t tried = 0;
  for (std::int64_t call = 1; call <= calls; ++call) {
    SCOPED_TRACE(fmt::format("seed {}, rank 0 stops at call {}", seed, call));
    FaultyStore store(*before_);
    Endings endings, next_endings;
    const TinyRanks next(25, 3, TinyCut::first_dim);
    Turns turns(store, seed);
    start_group_save(turns, ranks_, endings);
    turns.stop(0, call);
    turns.run();
    const Folder folder{objects_in(store), "c"};
    const std::vector<std::string> names = list_or_empty(store, folder.manifests()).value();
    const bool begun =
        std::any_of(names.begin(), names.end(), [](const std::string& name) { return name.ends_with(kTemporary); });
    const std::vector<std::int64_t> steps = list_steps(folder).value();
    if (!begun || steps.back() == 30) continue;
    ++tried;
    start_group_save(turns, next, next_endings, 2);
    turns.go_on_after(100000);
    turns.run();
    turns.go_on_after(0);
    turns.run();
    for (const auto& ending : next_endings) EXPECT_EQ(text_of(ending), "saved");
    EXPECT_EQ(list_steps(folder).value().back(), 25);
    const auto newest = open_newest(folder);
    ASSERT_TRUE(newest) << to_string(newest.error());
    EXPECT_EQ(verify_tiny(newest->checkpoint), "");
    EXPECT_EQ(newest->rejected.size(), 0U);
    if (HasFailure()) return;
  }
  EXPECT_GE(tried, 2) << "before it is written, and before it gets its name";
}

// Bits flip at rest in a checkpoint of many writers: restoring takes an older one, or gives the reason for each.
TEST_F(ManyWriters, AFlippedBitAnywhereIsWalkedBackFrom) {
  FaultyStore store(*before_);
  for (const auto& ending : group_save(store, ranks_)) ASSERT_EQ(text_of(ending), "saved");
  const Folder folder{objects_in(store), "c"};
  const Manifest newest = load_manifest(folder, 30).value(), older = load_manifest(folder, 20).value();
  ASSERT_FALSE(newest.chunks.empty());
  for (const ChunkFile& chunk : newest.chunks) {
    ASSERT_TRUE(store.flip_bit(folder.chunk(chunk.hash), chunk.bytes.count() / 2, 3));
    const bool shared = std::find(older.chunks.begin(), older.chunks.end(), chunk) != older.chunks.end();
    const auto restored = open_newest(folder);
    EXPECT_EQ(restored.ok(), !shared);
    if (restored) { EXPECT_EQ(restored->checkpoint.manifest().step, 20); }
    ASSERT_TRUE(store.flip_bit(folder.chunk(chunk.hash), chunk.bytes.count() / 2, 3));
  }
}

}  // namespace
}  // namespace systole::checkpoint
