// Many writers of one checkpoint: they make one checkpoint, or each ends with a useful error.

#include <gtest/gtest.h>

#include <cerrno>
#include <map>

#include "execute/checkpoint/compare.h"
#include "execute/checkpoint/gather.h"
#include "execute/checkpoint/part.h"
#include "execute/checkpoint/testing/group_saves.h"

namespace systole::checkpoint {
namespace {

constexpr int kSizes[] = {1, 2, 3, 4, 6, 8};

TEST(SaveGroup, AnyMeshWritesAndAnyOtherReads) {
  for (int writers : kSizes) {
    for (int cut = 0; cut < kTinyCuts; ++cut) {
      SCOPED_TRACE(fmt::format("{} writers, cut {}", writers, cut));
      auto store = make_memory_store();
      const TinyRanks ranks(30, writers, static_cast<TinyCut>(cut));
      for (const auto& ending : group_save(*store, ranks)) ASSERT_EQ(text_of(ending), "saved");
      const auto checkpoint = open_step({objects_in(*store), "c"}, 30);
      ASSERT_TRUE(checkpoint) << to_string(checkpoint.error());
      EXPECT_EQ(verify_tiny(*checkpoint), "");
      for (int readers : kSizes) {
        for (int other = 0; other < kTinyCuts; ++other)
          EXPECT_EQ(verify_on_ranks(*checkpoint, readers, static_cast<TinyCut>(other)), "");
      }
      EXPECT_EQ(files_too_many(*store), std::set<std::string>());
    }
  }
}

// A group of one writer makes the same bytes as a single writer.
TEST(SaveGroup, OneWriterIsTheSingleWriter) {
  auto alone = make_memory_store(), group = make_memory_store();
  ASSERT_TRUE(save_tiny({objects_in(*alone), "c"}, 30, tiny_options()));
  const TinyRanks ranks(30, 1, TinyCut::replicated);
  ASSERT_EQ(text_of(group_save(*group, ranks)[0]), "saved");
  const Folder folder{objects_in(*alone), "c"};
  EXPECT_EQ(read_text(*alone, folder.manifest(30)).value(), read_text(*group, folder.manifest(30)).value());
  EXPECT_EQ(alone->list(folder.chunks()).value(), group->list(folder.chunks()).value());
}

// For any mesh, the manifest lists the tensors in the model's order, and the state is the same.
TEST(SaveGroup, TheStateHasOneHash) {
  auto alone = make_memory_store();
  ASSERT_TRUE(save_tiny({objects_in(*alone), "c"}, 30, tiny_options()));
  const std::string hash = state_hash(open_step({objects_in(*alone), "c"}, 30).value()).value();
  std::vector<std::string> names;
  for (int writers : kSizes) {
    auto store = make_memory_store();
    const TinyRanks ranks(30, writers, TinyCut::each_axis_a_dim);
    for (const auto& ending : group_save(*store, ranks)) ASSERT_EQ(text_of(ending), "saved");
    const auto checkpoint = open_step({objects_in(*store), "c"}, 30).value();
    EXPECT_EQ(state_hash(checkpoint).value(), hash) << writers;
    std::vector<std::string> now;
    for (const TensorEntry& tensor : checkpoint.manifest().tensors) {
      if (!tensor.shape.empty()) now.push_back(tensor.name);
    }
    if (names.empty()) names = now;
    EXPECT_EQ(now, names) << writers;
  }
}

// Saves of many steps into one folder: two are kept, and no parts remain.
TEST(SaveGroup, SavesOneAfterAnother) {
  auto store = make_memory_store();
  std::int64_t number = 0;
  for (std::int64_t step : {10, 20, 30, 40}) {
    const TinyRanks ranks(step, 4, TinyCut::first_dim);
    ++number;
    const auto endings = group_save(*store, ranks, static_cast<std::uint64_t>(step), 1,
                                    [number](int, SaveRequest& request, SaveOptions&) { request.number = number; });
    for (const auto& ending : endings) ASSERT_EQ(text_of(ending), "saved");
  }
  EXPECT_EQ(list_steps({objects_in(*store), "c"}).value(), (std::vector<std::int64_t>{30, 40}));
  EXPECT_EQ(files_too_many(*store), std::set<std::string>());
}

class Refused : public testing::Test {
 protected:
  Refused() : store_(make_memory_store()), old_(20, 2, TinyCut::first_dim), ranks_(30, 4, TinyCut::first_dim) {
    group_save(*store_, old_, 1, 0);
  }
  // Every rank that lived got an error that contains `text`, and the folder is unchanged.
  void expect_all_told(const Endings& endings, const std::string& text, std::set<int> other = {}) {
    for (std::size_t rank = 0; rank < endings.size(); ++rank) {
      if (!endings[rank] || other.contains(static_cast<int>(rank))) continue;
      EXPECT_NE(text_of(endings[rank]).find(text), std::string::npos)
          << "rank " << rank << ": " << text_of(endings[rank]);
    }
    EXPECT_EQ(list_steps({objects_in(*store_), "c"}).value(), std::vector<std::int64_t>{20});
    const auto newest = open_newest({objects_in(*store_), "c"});
    ASSERT_TRUE(newest);
    EXPECT_EQ(verify_tiny(newest->checkpoint), "");
  }

  std::unique_ptr<Store> store_;
  TinyRanks old_, ranks_;
};

TEST_F(Refused, ARankThatIsGoneIsNamed) {
  Endings endings;
  Turns turns(*store_, 7);
  start_group_save(turns, ranks_, endings);
  turns.kill(2, 3);
  turns.run();
  expect_all_told(endings, "rank 2 did not write its part of the checkpoint of step 30 within 10.0 s: gone or stuck");
  EXPECT_EQ(files_too_many(*store_), std::set<std::string>());
}

// A save may have less patience, as before a preemption.
TEST_F(Refused, ASaveMayHaveLessPatience) {
  Endings endings;
  Turns turns(*store_, 7);
  start_group_save(turns, ranks_, endings, 1,
                   [](int, SaveRequest& request, SaveOptions&) { request.patience = Seconds(5); });
  turns.kill(2, 3);
  turns.run();
  expect_all_told(endings, "rank 2 did not write its part of the checkpoint of step 30 within 5.00 s");
}

TEST_F(Refused, TwoRanksThatAreGoneAreNamed) {
  Endings endings;
  Turns turns(*store_, 7);
  start_group_save(turns, ranks_, endings);
  turns.kill(1, 3);
  turns.kill(3, 5);
  turns.run();
  expect_all_told(endings, "ranks 1, 3 did not write their part");
}

TEST_F(Refused, RankZeroIsNamedByTheOthers) {
  Endings endings;
  Turns turns(*store_, 7);
  start_group_save(turns, ranks_, endings);
  turns.kill(0, 6);
  turns.run();
  expect_all_told(endings, "rank 0 did not say within 20.0 s how the save of step 30 ended");
}

// Fails at the last chunk: after it come three calls that make the chunks' names durable and four that put the part.
TEST_F(Refused, AFullDiskOnOneRankIsToldToAll) {
  for (const std::int64_t before_last : {10, 8}) {
    Endings endings;
    std::int64_t call = 0;
    {
      FaultyStore counted(*store_);
      Turns turns(counted, 7);
      start_group_save(turns, ranks_, endings);
      turns.run();
      call = turns.calls(2) - before_last;
    }
    Turns turns(*store_, 7);
    start_group_save(turns, ranks_, endings);
    turns.refuse(2, call, ENOSPC, 1);
    turns.run();
    expect_all_told(endings, "rank 2 could not write its part: ", {2});
    EXPECT_EQ(endings[0]->error().kind, ErrorKind::no_space);
    EXPECT_EQ(text_of(endings[2]).find("rank 2"), std::string::npos) << text_of(endings[2]);
    EXPECT_EQ(files_too_many(*store_), std::set<std::string>());
  }
}

// The disk is so full that not even the error can be written.
TEST_F(Refused, ARankThatCannotEvenSaySoIsLate) {
  Endings endings;
  Turns turns(*store_, 7);
  start_group_save(turns, ranks_, endings);
  turns.refuse(2, 5, ENOSPC);
  turns.run();
  expect_all_told(endings, "rank 2 did not write its part", {2});
  EXPECT_EQ(endings[2]->error().kind, ErrorKind::no_space);
}

TEST_F(Refused, ATensorThatNobodyOwnsIsMissed) {
  const auto endings = group_save(*store_, ranks_, 3, 1, [](int, SaveRequest& request, SaveOptions&) {
    for (TensorPart& part : request.tensors) {
      if (part.name == "blocks.0.attn.q") part.box.end = part.box.start;
      if (part.name == "blocks.0.attn.q") part.bytes = {}, part.held.reset();
    }
  });
  expect_all_told(endings, "tensor 'blocks.0.attn.q': the pieces cover 0 of 12 elements");
}

TEST_F(Refused, ABoxThatTwoRanksWroteIsNamed) {
  const TinyRanks replicated(30, 4, TinyCut::replicated);
  const auto whole = tiny_state(30);
  const auto endings = group_save(*store_, replicated, 3, 1, [&](int rank, SaveRequest& request, SaveOptions&) {
    if (rank == 1 || rank == 3) {
      std::erase_if(request.tensors, [](const TensorPart& part) { return part.name == "blocks.0.attn.q"; });
      request.tensors.push_back(tiny_request(30, whole).tensors[1]);
    }
  });
  expect_all_told(endings, "tensor 'blocks.0.attn.q': the pieces");
  EXPECT_NE(text_of(endings[0]).find("rank 1 wrote [0:3, 0:4]"), std::string::npos) << text_of(endings[0]);
  EXPECT_NE(text_of(endings[0]).find("rank 3 wrote [0:3, 0:4]"), std::string::npos) << text_of(endings[0]);
}

// A save name used twice: the old outcome is not mistaken for the new save's.
TEST(SaveGroup, AnOldOutcomeIsNotTakenForThisOne) {
  auto store = make_memory_store();
  for (const std::int64_t step : {30, 40}) {
    const TinyRanks ranks(step, 4, TinyCut::first_dim);
    for (const auto& ending : group_save(*store, ranks)) ASSERT_EQ(text_of(ending), "saved");
    ASSERT_TRUE(store->exists(Folder{objects_in(*store), "c"}.outcome("a-1-1")).value());
  }
  const TinyRanks ranks(50, 4, TinyCut::first_dim);
  Endings endings;
  Turns turns(*store, 3);
  start_group_save(turns, ranks, endings);
  turns.kill(0, 4);
  turns.run();
  for (int rank = 1; rank < 4; ++rank) {
    EXPECT_NE(text_of(endings[static_cast<std::size_t>(rank)]).find("rank 0 did not say"), std::string::npos)
        << text_of(endings[static_cast<std::size_t>(rank)]);
  }
}

TEST_F(Refused, RanksThatSaveDifferentSteps) {
  const auto endings = group_save(*store_, ranks_, 3, 1, [](int rank, SaveRequest& request, SaveOptions&) {
    if (rank == 3) request.step = 31;
  });
  expect_all_told(endings, "rank 3 writes step 31 as one of 4, rank 0 writes step 30 as one of 4", {3});
  EXPECT_NE(text_of(endings[3]).find("how the save of step 31 ended"), std::string::npos) << text_of(endings[3]);
}

TEST_F(Refused, ATruncatedChunkIsFoundBeforeTheCommit) {
  // The chunk shrinks between rank 1's part and the commit: its object is replaced.
  Endings endings;
  Turns turns(*store_, 5);
  start_group_save(turns, ranks_, endings, 1, [&](int rank, SaveRequest&, SaveOptions& options) {
    if (rank != 0) return;
    options.on_phase = [&](SavePhase phase, bool begins) {
      if (phase != SavePhase::commit || !begins) return;
      const Folder folder{objects_in(*store_), "c"};
      const auto part = read_part(folder, "a-1-1", 1).value();
      auto file = store_->create(folder.chunk(part->chunks[0].hash)).value();
      ASSERT_TRUE(file->append(std::vector<std::byte>(3)));
    };
  });
  turns.run();
  expect_all_told(endings, "a chunk that rank 1 wrote is damaged before the commit: the chunk has 3 bytes instead of");
}

// Two concurrent commits of one step, with different texts: the manifest is that of a commit that reported success.
TEST(Commit, OfTwoAtOnceOneStands) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    auto store = make_memory_store();
    const auto state = tiny_state(30);
    const SaveRequest request = tiny_request(30, state);
    const Fragment fragment = write_chunks({objects_in(*store), "c"}, request.tensors, tiny_options()).value();
    std::map<double, Status> told;
    Turns turns(*store, seed);
    turns.start(2, [&](int rank, Store& own, Clock&) {
      SaveRequest mine = request;
      mine.metric = 100 + rank;
      Status committed = commit({objects_in(own), "c"}, mine, std::span(&fragment, 1), tiny_options());
      told.emplace(*mine.metric, std::move(committed));
    });
    turns.run();
    const Manifest manifest = load_manifest({objects_in(*store), "c"}, 30).value();
    EXPECT_TRUE(told.at(*manifest.metric).ok()) << "seed " << seed;
    for (const auto& [metric, status] : told) {
      if (!status.ok()) { EXPECT_EQ(status.error().kind, ErrorKind::busy) << to_string(status.error()); }
    }
    EXPECT_EQ(verify_tiny(open_step({objects_in(*store), "c"}, 30).value()), "");
  }
}

// ---- who may save here

TEST(Claim, AnOlderGenerationIsRefused) {
  auto store = make_memory_store();
  const TinyRanks ranks(30, 4, TinyCut::first_dim), later(40, 3, TinyCut::first_dim);
  for (const auto& ending : group_save(*store, ranks, 1, 1)) ASSERT_EQ(text_of(ending), "saved");
  for (const auto& ending : group_save(*store, later, 1, 2)) ASSERT_EQ(text_of(ending), "saved");
  for (const auto& ending : group_save(*store, ranks, 1, 1)) {
    EXPECT_NE(text_of(ending).find("of generation 1 may no longer save: generation 2 of this run has begun"),
              std::string::npos)
        << text_of(ending);
  }
  FakeClock clock;
  const auto again = claim({objects_in(*store), "c"}, group_options(0, 4, clock, 1).group);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::busy);
  EXPECT_EQ(verify_tiny(open_newest({objects_in(*store), "c"})->checkpoint), "");
}

TEST(Claim, ASecondLaunchTakesTheFolderAndTheFirstIsTold) {
  auto store = make_memory_store();
  const TinyRanks first(30, 2, TinyCut::first_dim), second(40, 4, TinyCut::first_dim);
  const auto as = [](const char* launch) {
    return [launch](int, SaveRequest&, SaveOptions& options) { options.group.launch = launch; };
  };
  for (const auto& ending : group_save(*store, first, 1, 1, as("first"))) ASSERT_EQ(text_of(ending), "saved");
  // Without an explicit takeover it is refused: both would write.
  for (const auto& ending : group_save(*store, second, 1, 1, as("second"))) {
    EXPECT_NE(text_of(ending).find("another launch (first) saves into this folder now"), std::string::npos)
        << text_of(ending);
  }
  FakeClock clock;
  ASSERT_TRUE(claim({objects_in(*store), "c"}, group_options(0, 4, clock, 1, "second").group));
  for (const auto& ending : group_save(*store, second, 1, 1, as("second"))) ASSERT_EQ(text_of(ending), "saved");
  for (const auto& ending : group_save(*store, first, 1, 1, as("first"))) {
    EXPECT_NE(text_of(ending).find("another launch (second) saves into this folder now"), std::string::npos)
        << text_of(ending);
  }
  EXPECT_EQ(open_newest({objects_in(*store), "c"})->checkpoint.manifest().step, 40);
}

TEST(Claim, GroupsAreChecked) {
  EXPECT_TRUE(check(SaveGroup{}));
  FakeClock clock;
  EXPECT_FALSE(check(SaveGroup{.rank = 4, .world = 4, .launch = "a", .clock = &clock}));
  EXPECT_FALSE(check(SaveGroup{.rank = 1, .world = 4, .launch = "", .clock = &clock}));
  EXPECT_FALSE(check(SaveGroup{.rank = 1, .world = 4, .launch = "a"}));
  EXPECT_FALSE(check(SaveGroup{.rank = 1, .world = 4, .launch = "../a", .clock = &clock}));
}

// A buffer may hold padding and elements that another rank saves; the chunk holds only the box.
TEST(SaveGroup, ABufferMayHoldMoreThanItsBox) {
  auto store = make_memory_store();
  const HostTensor whole = tiny_value(1, 3, DType::f32, {6, 5});
  SaveRequest request;
  request.step = 3;
  request.tensors = {{"w", Role::parameter, DType::f32, {6, 5}, Box{{0, 0}, {6, 2}}, whole.bytes()},
                     {"w", Role::parameter, DType::f32, {6, 5}, Box{{0, 2}, {6, 5}}, whole.bytes()}};
  for (TensorPart& part : request.tensors) part.held = Box::whole({6, 5});
  ASSERT_TRUE(save({objects_in(*store), ""}, request, tiny_options()));
  const auto checkpoint = open_step({objects_in(*store), ""}, 3).value();
  HostTensor read(DType::f32, {6, 5});
  ASSERT_TRUE(checkpoint.read("w", Box::whole({6, 5}), read.bytes()));
  EXPECT_EQ(read, whole);
  request.tensors[0].held = Box{{0, 1}, {6, 6}};
  EXPECT_EQ(save({objects_in(*store), ""}, request, tiny_options()).error().kind, ErrorKind::invalid);
}

}  // namespace
}  // namespace systole::checkpoint
