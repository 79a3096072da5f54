#include "execute/checkpoint/retention.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "execute/checkpoint/testing/tiny_state.h"
#include "ground/store/testing/faulty.h"

namespace systole::checkpoint {
namespace {

using Steps = std::vector<std::int64_t>;

std::unique_ptr<Store> store_with(const Steps& steps) {
  auto store = make_memory_store();
  for (std::int64_t step : steps) save_tiny({objects_in(*store), "c"}, step, tiny_options(0)).value();
  return store;
}

Steps kept_by(const Retention& retention, const Steps& steps, std::int64_t blessed = -1) {
  auto store = store_with(steps);
  const Folder folder{objects_in(*store), "c"};
  if (blessed >= 0) { EXPECT_TRUE(bless(folder, blessed)); }
  const auto report = sweep(folder, retention);
  EXPECT_TRUE(report);
  EXPECT_EQ(report->kept, list_steps(folder).value());
  for (std::int64_t step : report->kept) EXPECT_TRUE(open_step(folder, step));
  EXPECT_EQ(sweep(folder, retention)->chunks_removed, 0);
  return report->kept;
}

TEST(Retention, LastEveryBestAndBlessed) {
  const Steps steps = {10, 20, 30, 40, 50, 60};  // metrics 1 + step % 7: 4, 7, 3, 6, 2, 5
  EXPECT_EQ(kept_by({.last = 0}, steps), steps);
  EXPECT_EQ(kept_by({.last = 1}, steps), (Steps{60}));
  EXPECT_EQ(kept_by({.last = 2}, steps), (Steps{50, 60}));
  EXPECT_EQ(kept_by({.last = 9}, steps), steps);
  EXPECT_EQ(kept_by({.last = 1, .every = 20}, steps), (Steps{20, 40, 60}));
  EXPECT_EQ(kept_by({.last = 1, .best = true}, steps), (Steps{50, 60}));
  EXPECT_EQ(kept_by({.last = 1}, steps, 20), (Steps{20, 60}));
}

TEST(Retention, TheBestOfEqualsIsTheNewest) {
  EXPECT_EQ(kept_by({.last = 1, .best = true}, {7, 14, 15}), (Steps{14, 15}));
}

TEST(Retention, UnblessedOnesGo) {
  auto store = store_with({10, 20});
  const Folder folder{objects_in(*store), "c"};
  ASSERT_TRUE(bless(folder, 10));
  EXPECT_TRUE(sweep(folder, {.last = 1})->removed.empty());
  ASSERT_TRUE(unbless(folder, 10));
  EXPECT_EQ(sweep(folder, {.last = 1})->removed, (Steps{10}));
  EXPECT_EQ(bless(folder, 11).error().kind, ErrorKind::not_found);
  EXPECT_EQ(unbless(folder, 20).error().kind, ErrorKind::not_found);
}

// A damaged manifest is kept, with the chunks that its text names, and is reported.
TEST(Retention, UnreadableManifestsKeepTheirChunks) {
  const auto initial = store_with({10, 20, 30});
  FaultyStore store(*initial);
  const Folder folder{objects_in(store), "c"};
  const Manifest ten = load_manifest(folder, 10).value();
  const std::string text = read_text(store, folder.manifest(10)).value();
  ASSERT_TRUE(store.flip_bit(folder.manifest(10), static_cast<std::int64_t>(text.find("date")), 1));
  const auto report = sweep(folder, {.last = 1}).value();
  ASSERT_EQ(report.unreadable.size(), 1U);
  EXPECT_EQ(report.unreadable[0].path, folder.manifest(10));
  EXPECT_EQ(report.kept, (Steps{30}));
  EXPECT_FALSE(report.postponed);
  for (const ChunkFile& chunk : ten.chunks) EXPECT_TRUE(verify_chunk(folder, chunk));
}

TEST(Retention, ANewerVersionsCheckpointIsNotTouched) {
  auto store = store_with({10, 20, 30});
  const Folder folder{objects_in(*store), "c"};
  std::string text = read_text(*store, folder.manifest(10)).value();
  text.replace(text.find("\"version\":1"), 11, "\"version\":9");
  ASSERT_TRUE(write_whole(*store, folder.manifest(10), text));
  const std::size_t chunks = load_manifest(folder, 20)->chunks.size();
  EXPECT_EQ(sweep(folder, {.last = 1})->chunks_removed, static_cast<std::int64_t>(chunks) - 1)
      << "only those of 20 alone";
  EXPECT_EQ(list_steps(folder).value(), (Steps{10, 30}));
}

TEST(Retention, NothingGoesWhenAManifestCannotBeRead) {
  const auto initial = store_with({10, 20, 30});
  for (std::int64_t read = 1; read <= 3; ++read) {
    FaultyStore store(*initial);
    store.inject(ReadFault{read, EIO, 0});
    const auto report = sweep({objects_in(store), "c"}, {.last = 1}).value();
    EXPECT_TRUE(report.postponed);
    EXPECT_EQ(report.unreadable.size(), 1U);
    EXPECT_EQ(report.chunks_removed, 0);
    EXPECT_EQ(list_steps({objects_in(store), "c"}).value(), (Steps{10, 20, 30}));
  }
}

// A checkpoint with a missing chunk is not reliable: the last two intact ones stay.
TEST(Retention, DamagedOnesDoNotCountAmongTheLast) {
  auto store = store_with({10, 20, 30, 40});
  const Folder folder{objects_in(*store), "c"};
  ASSERT_TRUE(store->remove(folder.chunk(load_manifest(folder, 40)->chunks[0].hash)));
  EXPECT_EQ(sweep(folder, {.last = 2})->kept, (Steps{20, 30, 40}));
}

TEST(Retention, LeftoversGoAndStrangersStay) {
  auto store = store_with({10});
  const Folder folder{objects_in(*store), "c"};
  const std::string orphan = folder.chunk("00000000000000000000000000000000"), leftover = folder.chunk("abc.0.tmp");
  const std::string stranger = folder.chunk("notes.txt"), half = folder.manifest(20) + ".tmp";
  for (const std::string& path : {orphan, leftover, stranger, half}) ASSERT_TRUE(write_whole(*store, path, "abcd"));
  const auto report = sweep(folder, {.last = 1}).value();
  EXPECT_EQ(report.chunks_removed, 1);
  EXPECT_EQ(report.freed, Bytes(12));
  for (const std::string& path : {orphan, leftover, half}) EXPECT_FALSE(store->exists(path).value()) << path;
  EXPECT_TRUE(store->exists(stranger).value());
}

TEST(Retention, BlessingTwiceIsBlessingOnce) {
  auto store = store_with({10, 20});
  const Folder folder{objects_in(*store), "c"};
  ASSERT_TRUE(bless(folder, 10));
  ASSERT_TRUE(bless(folder, 10));
  EXPECT_EQ(bless(folder, 30).error().kind, ErrorKind::not_found);
  EXPECT_EQ(list_blessed(folder).value(), (Steps{10}));
  ASSERT_TRUE(unbless(folder, 10));
  EXPECT_EQ(unbless(folder, 10).error().kind, ErrorKind::not_found);
  EXPECT_EQ(list_blessed(folder).value(), (Steps{}));
}

TEST(Retention, SpaceIsCheckedWithNumbers) {
  const auto initial = store_with({10});
  FaultyStore store(*initial);
  const Folder folder{objects_in(store), "c"};
  const auto state = tiny_state(20);
  const Bytes per_save = save_bytes(tiny_request(20, state).tensors, tiny_options());
  EXPECT_EQ(per_save, load_manifest(folder, 10)->chunk_bytes());
  constexpr const char* kShown = "runs/a/checkpoints";
  const auto need = check_space(folder, per_save, {.last = 2}, 10, 0, kShown);
  ASSERT_TRUE(need) << to_string(need.error());
  EXPECT_EQ(need->checkpoints, 3);
  EXPECT_EQ(check_space(folder, per_save, {.last = 2, .every = 50, .best = true}, 10, 1000, kShown)->checkpoints, 24);
  EXPECT_EQ(check_space(folder, per_save, {.last = 2, .every = 50}, 30, 300, kShown)->checkpoints, 5)
      << "those of 150 and 300";
  EXPECT_EQ(check_space(folder, per_save, {.last = 2, .every = 50}, 0, 300, kShown)->checkpoints, 4) << "saves by time";
  EXPECT_EQ(check_space(folder, per_save, {.last = 0}, 10, 70, kShown)->checkpoints, 8);

  store.limit_space(kGiB);
  const auto refused = check_space(folder, 400 * kMiB, {.last = 2}, 10, 0, kShown);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::does_not_fit);
  EXPECT_TRUE(refused.error().message.starts_with(
      "checkpoints do not fit: 3 of 419,430,400 bytes each (2 kept, one being written) and 1,048,576 for their "
      "manifests are 1,259,339,776 bytes, and 'runs/a/checkpoints' has room for "))
      << refused.error().message;
  EXPECT_NE(refused.error().hint.find("keep 1"), std::string::npos) << refused.error().hint;
  const auto often = check_space(folder, 200 * kMiB, {.last = 2, .every = 10}, 10, 1000, kShown);
  ASSERT_FALSE(often);
  EXPECT_TRUE(often.error().hint.starts_with("a larger checkpoint.keep_every")) << often.error().hint;
}

}  // namespace
}  // namespace systole::checkpoint
