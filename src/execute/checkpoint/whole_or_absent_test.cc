// Whole or absent: a checkpoint is complete or not there, under any fault at any write, and restore finds the newest
// one that verifies. Every changing call of a save is tried as a crash point and as a point of failure; then come
// seeded random runs of many saves with faults during and between them.
// SYSTOLE_TEST_LONG=1 runs 10,000 of these instead of 200, and tears unsynced data in six ways after each call instead
// of one. SYSTOLE_TEST_SEED=n sets the first seed.

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>

#include "execute/checkpoint/testing/tiny_state.h"
#include "ground/store/testing/faulty_objects.h"

namespace systole::checkpoint {
namespace {

constexpr std::string_view kDir = "run/checkpoints";

Folder folder_in(Store& store) { return {objects_in(store), std::string(kDir)}; }

// A store with checkpoints 10 and 20, durable. Saving 30 then writes, commits and sweeps 10.
std::unique_ptr<Store> store_with_history(std::initializer_list<std::int64_t> steps = {10, 20}) {
  auto store = make_memory_store();
  for (std::int64_t step : steps) save_tiny(folder_in(*store), step, tiny_options()).value();
  return store;
}

// The step that restores, or nothing if there is none. Verifies every value; a failure is a test failure.
std::optional<std::int64_t> restored_step(Store& store) {
  auto restored = open_newest(folder_in(store));
  if (!restored) {
    EXPECT_EQ(restored.error().kind, ErrorKind::not_found) << to_string(restored.error());
    return std::nullopt;
  }
  EXPECT_EQ(verify_tiny(restored->checkpoint), "");
  return restored->checkpoint.manifest().step;
}

// Not only the newest: every existing checkpoint is complete. (Damage at rest is excluded: see flip below.)
void expect_all_whole(const Folder& folder) {
  const std::vector<std::int64_t> steps = list_steps(folder).value();
  for (std::int64_t step : steps) {
    const auto opened = open_step(folder, step);
    EXPECT_TRUE(opened) << "checkpoint " << step << ": " << to_string(opened.error());
    if (opened) { EXPECT_EQ(verify_tiny(*opened), ""); }
  }
}

// Chunk files that no manifest names, and leftovers.
std::set<std::string> orphans(Store& store) {
  const Folder folder = folder_in(store);
  const std::vector<std::string> chunks = list_or_empty(store, folder.chunks()).value();
  std::set<std::string> names(chunks.begin(), chunks.end());
  const std::vector<std::int64_t> steps = list_steps(folder).value();
  for (std::int64_t step : steps) {
    const Manifest manifest = load_manifest(folder, step).value();
    for (const ChunkFile& chunk : manifest.chunks) names.erase(chunk.hash);
  }
  const std::vector<std::string> manifests = list_or_empty(store, folder.manifests()).value();
  for (const std::string& name : manifests) {
    if (name.ends_with(kTemporary)) names.insert(name);
  }
  return names;
}

// The folder works as a new one: another save works, restores, and leaves no leftovers.
void expect_further_save_works(Store& store) {
  const auto saved = save_tiny(folder_in(store), 40, tiny_options());
  ASSERT_TRUE(saved) << to_string(saved.error());
  EXPECT_FALSE(saved->sweep_error) << to_string(*saved->sweep_error);
  EXPECT_EQ(restored_step(store), 40);
  EXPECT_EQ(orphans(store), std::set<std::string>());
}

struct Cut {
  Unsynced mode;
  std::uint64_t seed;
};
// By default one way of tearing, which varies with the call.
std::vector<Cut> cuts(std::int64_t call = 0) {
  const bool all_ways = std::getenv("SYSTOLE_TEST_LONG") != nullptr;
  std::vector<Cut> all = {{Unsynced::lost, 0}, {Unsynced::kept, 0}};
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    if (all_ways || seed == 1 + static_cast<std::uint64_t>(call) % 6) all.push_back({Unsynced::torn, seed});
  }
  return all;
}
const char* name_of(Unsynced mode) {
  return mode == Unsynced::lost ? "lost" : mode == Unsynced::kept ? "kept" : "torn";
}

std::int64_t calls_of_a_save(Store& before, std::int64_t step) {
  FaultyStore store(before);
  save_tiny(folder_in(store), step, tiny_options()).value();
  return store.changing_calls();
}

class CrashAt : public testing::TestWithParam<bool> {};

// Crashes before and after every call of a save, with three outcomes for unsynced data.
TEST_P(CrashAt, WholeOrAbsent_EveryCallOfASaveIsACrashPoint) {
  const auto before = GetParam() ? store_with_history() : make_memory_store();
  const std::optional<std::int64_t> old = GetParam() ? std::optional<std::int64_t>(20) : std::nullopt;
  const std::int64_t calls = calls_of_a_save(*before, 30);
  ASSERT_GT(calls, 20);
  std::int64_t tried = 0, new_seen = 0, old_seen = 0;
  for (std::int64_t call = 1; call <= calls; ++call) {
    for (const Fault fault : {Fault::dies_before(call), Fault::dies_before(call, 5), Fault::dies_after(call)}) {
      FaultyStore store(*before);
      store.inject(fault);
      EXPECT_THROW(static_cast<void>(save_tiny(folder_in(store), 30, tiny_options())), SimulatedCrash);
      for (const Cut& cut : cuts(call)) {
        SCOPED_TRACE(fmt::format("{} call {} ({}), unsynced {} seed {}",
                                 fault.kind == Fault::Kind::dies_after ? "dies after" : "dies before", call,
                                 store.calls().back(), name_of(cut.mode), cut.seed));
        const auto survivor = store.survivor(cut.mode, cut.seed);
        const auto step = restored_step(*survivor);
        EXPECT_TRUE(step == old || step == 30) << (step ? *step : -1);
        (step == 30 ? new_seen : old_seen) += 1;
        expect_all_whole(folder_in(*survivor));
        expect_further_save_works(*survivor);
        ++tried;
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(new_seen, 0);
  EXPECT_GT(old_seen, 0);
  RecordProperty("crash_points", std::to_string(tried));
}
INSTANTIATE_TEST_SUITE_P(WholeOrAbsent, CrashAt, testing::Bool(), [](const auto& with) {
  return with.param ? "with_a_previous_checkpoint" : "into_an_empty_folder";
});

// A save that reported success survives any later power cut.
TEST(WholeOrAbsent, WhatWasReportedStays) {
  const auto before = store_with_history();
  FaultyStore store(*before);
  ASSERT_TRUE(save_tiny(folder_in(store), 30, tiny_options()));
  for (const Cut& cut : cuts()) EXPECT_EQ(restored_step(*store.survivor(cut.mode, cut.seed)), 30);
}

struct Refusal {
  const char* name;
  int number;
  bool onwards;
  std::int64_t landed;
};
class FailAt : public testing::TestWithParam<Refusal> {};

TEST_P(FailAt, WholeOrAbsent_EveryCallOfASaveMayFail) {
  const auto before = store_with_history();
  const Refusal refusal = GetParam();
  const std::int64_t calls = calls_of_a_save(*before, 30);
  ASSERT_GT(calls, 20);
  for (std::int64_t call = 1; call <= calls; ++call) {
    FaultyStore store(*before);
    store.inject(refusal.onwards ? Fault::fails_from(call, refusal.number)
                                 : Fault::fails(call, refusal.number, refusal.landed));
    const auto saved = save_tiny(folder_in(store), 30, tiny_options());
    SCOPED_TRACE(
        fmt::format("{} at call {} ({})", refusal.name, call, store.calls()[static_cast<std::size_t>(call - 1)]));
    // The caller knows: the save failed, or the checkpoint exists and the sweep failed.
    EXPECT_TRUE(!saved || saved->sweep_error);
    if (!saved) {
      EXPECT_TRUE(saved.error().kind == ErrorKind::io || saved.error().kind == ErrorKind::no_space)
          << to_string(saved.error());
    }
    for (const Cut& cut : cuts(call)) {
      SCOPED_TRACE(fmt::format("unsynced {} seed {}", name_of(cut.mode), cut.seed));
      const auto survivor = store.survivor(cut.mode, cut.seed);
      const auto step = restored_step(*survivor);
      EXPECT_TRUE(step == 30 || (!saved && step == 20));
      expect_all_whole(folder_in(*survivor));
    }
    store.clear_faults();
    const auto step = restored_step(store);
    EXPECT_TRUE(step == 30 || (!saved && step == 20));
    expect_all_whole(folder_in(store));
    // The same step again, as after a restart: it finds leftovers of the first attempt, and may rely only on durable
    // ones.
    ASSERT_TRUE(save_tiny(folder_in(store), 30, tiny_options()));
    for (const Cut& cut : cuts(call))
      EXPECT_EQ(restored_step(*store.survivor(cut.mode, cut.seed)), 30) << name_of(cut.mode);
    expect_further_save_works(store);
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(WholeOrAbsent, FailAt,
                         testing::Values(Refusal{"eio_once", EIO, false, 0}, Refusal{"eio_onwards", EIO, true, 0},
                                         Refusal{"enospc_once", ENOSPC, false, 0},
                                         Refusal{"enospc_onwards", ENOSPC, true, 0},
                                         Refusal{"short_write", ENOSPC, false, 7},
                                         Refusal{"short_write_eio", EIO, false, 1}),
                         [](const auto& with) { return with.param.name; });

// Failing or wrong reads during a save (an existing chunk, the manifests) cost at most one more write of a chunk.
TEST(WholeOrAbsent, EveryReadOfASaveMayFailOrFlipABit) {
  const auto before = store_with_history();
  FaultyStore counted(*before);
  ASSERT_TRUE(save_tiny(folder_in(counted), 30, tiny_options()));
  ASSERT_GT(counted.reads(), 2);
  for (std::int64_t read = 1; read <= counted.reads(); ++read) {
    for (const ReadFault fault :
         {ReadFault{read, EIO, 0}, ReadFault{read, 0, 3}, ReadFault{read, 0, 2001}, ReadFault{read, 0, 9000}}) {
      SCOPED_TRACE(fmt::format("read {} errno {} bit {}", read, fault.number, fault.bit));
      FaultyStore store(*before);
      store.inject(fault);
      ASSERT_TRUE(save_tiny(folder_in(store), 30, tiny_options()));
      store.clear_faults();
      EXPECT_EQ(restored_step(store), 30);
      EXPECT_TRUE(open_step(folder_in(store), 20)) << "the sweep took a chunk of a kept checkpoint";
      expect_further_save_works(store);
    }
  }
}

// A full disk: the save fails with that error, the old checkpoint stays, and the partial write is removed.
TEST(WholeOrAbsent, AFullDiskAtEveryByte) {
  const auto before = store_with_history();
  std::int64_t used = 0;
  const std::vector<std::string> chunks = before->list(folder_in(*before).chunks()).value();
  for (const std::string& name : chunks) used += before->size(folder_in(*before).chunk(name))->count();
  for (std::int64_t step : {10, 20}) used += before->size(folder_in(*before).manifest(step))->count();
  int refused = 0;
  for (std::int64_t room = 0; room < 8000; room += 97) {
    FaultyStore store(*before);
    store.limit_space(Bytes(used + room));
    const auto saved = save_tiny(folder_in(store), 30, tiny_options());
    SCOPED_TRACE(fmt::format("{} bytes free", room));
    if (!saved) {
      ++refused;
      EXPECT_EQ(saved.error().kind, ErrorKind::no_space) << to_string(saved.error());
      EXPECT_EQ(orphans(store), std::set<std::string>());
    }
    EXPECT_EQ(restored_step(store), saved ? 30 : 20);
  }
  EXPECT_GT(refused, 5);
}

// The same with a cloud store: each call is refused, succeeds with its answer lost, or kills the process.
TEST(WholeOrAbsent, EveryCallOfASaveToACloudMayFail) {
  const auto with_history = [] {
    const std::shared_ptr<ObjectStore> cloud = make_memory_objects();
    for (const std::int64_t step : {10, 20}) save_tiny({cloud, std::string(kDir)}, step, tiny_options()).value();
    return cloud;
  };
  std::int64_t calls = 0;
  {
    const auto cloud = with_history();
    const auto counted = std::make_shared<FaultyObjects>(*cloud);
    ASSERT_TRUE(save_tiny({counted, std::string(kDir)}, 30, tiny_options()));
    calls = counted->changing_calls();
  }
  ASSERT_GT(calls, 10);
  for (std::int64_t call = 1; call <= calls; ++call) {
    for (const auto kind : {ObjectFault::Kind::refused, ObjectFault::Kind::answer_lost, ObjectFault::Kind::dies_before,
                            ObjectFault::Kind::dies_after}) {
      for (const bool onwards : {false, true}) {
        const auto cloud = with_history();
        const auto faulty = std::make_shared<FaultyObjects>(*cloud);
        faulty->inject({kind, call, onwards});
        bool said = false;
        try {
          said = save_tiny({faulty, std::string(kDir)}, 30, tiny_options()).ok();
        } catch (const SimulatedCrash&) {}
        SCOPED_TRACE(fmt::format("fault {} at call {} ({})", static_cast<int>(kind), call,
                                 faulty->calls()[static_cast<std::size_t>(call - 1)]));
        const Folder folder{cloud, std::string(kDir)};
        const auto restored = open_newest(folder).value();
        const std::int64_t step = restored.checkpoint.manifest().step;
        EXPECT_TRUE(step == 30 || (!said && step == 20)) << step;
        EXPECT_EQ(verify_tiny(restored.checkpoint), "");
        expect_all_whole(folder);
        // The same step again, as after a restart.
        const auto again = save_tiny(folder, 30, tiny_options());
        ASSERT_TRUE(again) << to_string(again.error());
        EXPECT_FALSE(again->sweep_error);
        EXPECT_EQ(open_newest(folder)->checkpoint.manifest().step, 30);
        EXPECT_EQ(cloud->abort_uploads("").value(), Bytes(0)) << "the sweep left uploads begun";
        if (HasFailure()) return;
      }
    }
  }
}

// ---- seeded runs

class SeededRun {
 public:
  explicit SeededRun(std::uint64_t seed) : random_(seed), store_(std::make_unique<FaultyStore>()) {
    options_.chunk_bytes = Bytes(pick(1, 5) * 64);
    options_.retention = {static_cast<int>(pick(1, 3)), pick(0, 2) * 20, pick(0, 1) == 1};
  }

  // Returns the trace of actions; stops at the first failed expectation.
  void play() {
    const std::int64_t acts = pick(3, 8);
    for (std::int64_t act = 0; act < acts && !testing::Test::HasFailure(); ++act) {
      SCOPED_TRACE(trace_);
      switch (pick(0, 7)) {
        case 0: flip(); break;
        case 1:
        case 2: crash(); break;
        case 3: refuse(); break;
        default: succeed(); break;
      }
    }
    succeed();
  }
  const std::string& trace() const { return trace_; }

 private:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  Folder folder() { return folder_in(*store_); }
  std::int64_t next_step() { return last_tried_ = last_tried_ + pick(0, 1) * 10 + (last_tried_ == 0 ? 10 : 0); }

  void succeed() {
    const std::int64_t step = next_step();
    trace_ += fmt::format(" save {};", step);
    const auto saved = save_tiny(folder(), step, options_);
    ASSERT_TRUE(saved) << trace_ << "\n" << to_string(saved.error());
    ASSERT_FALSE(saved->sweep_error) << trace_;
    floor_ = step;
    expect_restores();
  }

  void refuse() {
    const std::int64_t step = next_step(), call = pick(1, 60), number = pick(0, 1) ? EIO : ENOSPC, landed = pick(0, 40);
    const bool onwards = pick(0, 1) == 1;
    trace_ += fmt::format(" save {} with errno {} at call {}{};", step, number, call, onwards ? " onwards" : "");
    const std::int64_t at = store_->changing_calls() + call;
    store_->inject(onwards ? Fault::fails_from(at, static_cast<int>(number))
                           : Fault::fails(at, static_cast<int>(number), landed));
    const auto saved = save_tiny(folder(), step, options_);
    store_->clear_faults();
    if (saved) floor_ = step;
    expect_restores();
    if (!saved && pick(0, 1)) cut_power();
  }

  void crash() {
    const std::int64_t step = next_step(), call = pick(1, 60);
    const bool after = pick(0, 1) == 1;
    trace_ += fmt::format(" save {} dying {} call {};", step, after ? "after" : "before", call);
    const std::int64_t at = store_->changing_calls() + call;
    store_->inject(after ? Fault::dies_after(at) : Fault::dies_before(at, pick(0, 40)));
    try {
      const auto saved = save_tiny(folder(), step, options_);
      ASSERT_TRUE(saved) << trace_;
      floor_ = step;
    } catch (const SimulatedCrash&) {}
    store_->clear_faults();
    cut_power();
  }

  void cut_power() {
    const auto mode = static_cast<Unsynced>(pick(0, 2));
    trace_ += fmt::format(" cut, unsynced {};", name_of(mode));
    const auto survivor = store_->survivor(mode, random_());
    store_ = std::make_unique<FaultyStore>(*survivor);
    expect_restores();
    floor_ = restored_;  // what is on disk after the cut is durable
  }

  // A bit flips at rest: an older intact checkpoint restores, or the error has the reason for each.
  void flip() {
    const Folder f = folder();
    std::vector<std::string> paths;
    const std::vector<std::string> chunks = list_or_empty(*store_, f.chunks()).value();
    const std::vector<std::int64_t> steps = list_steps(f).value();
    for (const std::string& name : chunks) paths.push_back(f.chunk(name));
    for (std::int64_t step : steps) paths.push_back(f.manifest(step));
    if (paths.empty()) return;
    const std::string path = paths[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(paths.size()) - 1))];
    const std::int64_t size = store_->size(path)->count();
    if (size == 0) return;
    trace_ += fmt::format(" flip in {};", path);
    ASSERT_TRUE(store_->flip_bit(path, pick(0, size - 1), static_cast<int>(pick(0, 7))));
    flipped_ = true;
    floor_ = 0;
    expect_restores();
    floor_ = restored_;
  }

  // Restores a checkpoint of some attempted save, verified, not older than the newest durable one. An attempted one may
  // appear later: when a damaged chunk is rewritten, or the name of an unreported save survived.
  void expect_restores() {
    auto restored = open_newest(folder());
    if (!restored) {
      restored_ = 0;
      EXPECT_EQ(floor_, 0) << trace_ << "\n" << to_string(restored.error());
      EXPECT_TRUE(restored.error().kind == ErrorKind::not_found || restored.error().kind == ErrorKind::corrupt);
      return;
    }
    restored_ = restored->checkpoint.manifest().step;
    EXPECT_EQ(verify_tiny(restored->checkpoint), "") << trace_;
    EXPECT_GE(restored_, floor_) << trace_;
    EXPECT_LE(restored_, last_tried_) << trace_;
    if (!flipped_) expect_all_whole(folder());
  }

  std::mt19937_64 random_;
  std::unique_ptr<FaultyStore> store_;
  SaveOptions options_;
  std::string trace_;
  std::int64_t floor_ = 0;       // the newest step that must restore; 0: none
  bool flipped_ = false;         // a bit has flipped at rest
  std::int64_t restored_ = 0;    // the step that restored last; 0: none
  std::int64_t last_tried_ = 0;  // the newest step of an attempted save
};

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(WholeOrAbsent, SeededRunsOfManySavesAndFaults) {
  const std::uint64_t first = number_from("SYSTOLE_TEST_SEED", 1);
  const std::uint64_t runs = std::getenv("SYSTOLE_TEST_LONG") ? 10'000 : 200;
  fmt::print("whole-or-absent: {} seeded runs from seed {}\n", runs, first);
  for (std::uint64_t seed = first; seed < first + runs; ++seed) {
    SCOPED_TRACE(fmt::format("SYSTOLE_TEST_SEED={}", seed));
    SeededRun(seed).play();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace systole::checkpoint
