#include "ground/store/testing/faulty.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace systole {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void write(Store& store, std::string_view path, std::string_view text, bool sync) {
  std::unique_ptr<WritableFile> file = store.create(path).value();
  file->append(bytes_of(text)).value();
  if (sync) file->sync().value();
}

TEST(Faulty, forgets_unsynced_bytes) {
  FaultyStore store;
  write(store, "a", "saved", true);
  store.sync_dir("").value();
  store.append_to("a").value()->append(bytes_of(" and not")).value();
  EXPECT_EQ(*read_text(store, "a"), "saved and not");
  EXPECT_EQ(*read_text(*store.survivor(Unsynced::lost), "a"), "saved");
  EXPECT_EQ(*read_text(*store.survivor(Unsynced::kept), "a"), "saved and not");
}

TEST(Faulty, forgets_unsynced_names) {
  FaultyStore store;
  write(store, "a", "bytes are safe, the name is not", true);
  EXPECT_FALSE(*store.survivor(Unsynced::lost)->exists("a"));
  EXPECT_TRUE(*store.survivor(Unsynced::kept)->exists("a"));
  store.sync_dir("").value();
  EXPECT_TRUE(*store.survivor(Unsynced::lost)->exists("a"));

  store.make_dirs("d").value();
  write(store, "d/x", "1", true);
  store.sync_dir("d").value();
  EXPECT_FALSE(*store.survivor(Unsynced::lost)->exists("d")) << "the folder's own name was not synced";
  store.sync_dir("").value();
  EXPECT_TRUE(*store.survivor(Unsynced::lost)->exists("d/x"));

  store.remove("d/x").value();
  EXPECT_TRUE(*store.survivor(Unsynced::lost)->exists("d/x")) << "an unsynced removal comes back";
}

TEST(Faulty, a_rename_is_atomic_and_safe_after_its_folder) {
  FaultyStore store;
  write(store, "a", "old", true);
  write(store, "a.tmp", "new", true);
  store.sync_dir("").value();
  store.rename("a.tmp", "a").value();
  EXPECT_EQ(*read_text(*store.survivor(Unsynced::lost), "a"), "old");
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::unique_ptr<Store> after = store.survivor(Unsynced::torn, seed);
    const std::string text = *read_text(*after, "a");
    EXPECT_EQ(*after->exists("a.tmp"), text == "old");
  }
  store.sync_dir("").value();
  EXPECT_EQ(*read_text(*store.survivor(Unsynced::lost), "a"), "new");
}

TEST(Faulty, a_rename_between_folders_waits_for_the_target) {
  FaultyStore store;
  make_dirs_synced(store, "from").value();
  make_dirs_synced(store, "to").value();
  write(store, "from/x", "1", true);
  store.rename("from/x", "to/x").value();
  store.sync_dir("from").value();
  EXPECT_FALSE(*store.survivor(Unsynced::lost)->exists("to/x"));
  store.sync_dir("to").value();
  EXPECT_TRUE(*store.survivor(Unsynced::lost)->exists("to/x"));
  EXPECT_FALSE(*store.survivor(Unsynced::kept)->exists("from/x")) << "the old name must not come back";
}

TEST(Faulty, truncation_is_unsynced_too) {
  FaultyStore store;
  write_whole(store, "a", "precious").value();
  store.create("a").value();
  EXPECT_EQ(*read_text(*store.survivor(Unsynced::lost), "a"), "precious");
  EXPECT_EQ(*read_text(*store.survivor(Unsynced::kept), "a"), "");
}

TEST(Faulty, torn_shows_prefixes_and_zeros) {
  FaultyStore store;
  write_whole(store, "a", "SAFE").value();
  store.append_to("a").value()->append(bytes_of("abcdef")).value();
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 400; ++seed) seen.insert(*read_text(*store.survivor(Unsynced::torn, seed), "a"));
  EXPECT_TRUE(seen.contains("SAFE"));
  EXPECT_TRUE(seen.contains("SAFEabcdef"));
  EXPECT_TRUE(seen.contains("SAFEabc"));
  EXPECT_TRUE(seen.contains(std::string("SAFEabc\0\0\0", 10)));
  for (const std::string& text : seen) EXPECT_EQ(text.substr(0, 4), "SAFE");
}

TEST(Faulty, fails_the_nth_call_and_only_it) {
  FaultyStore store;
  store.inject(Fault::fails(2, EIO, 3));
  std::unique_ptr<WritableFile> file = store.create("a").value();
  const Status failed = file->append(bytes_of("abcdef"));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::io);
  file->append(bytes_of("!")).value();
  EXPECT_EQ(*read_text(store, "a"), "abc!");
  EXPECT_EQ(store.changing_calls(), 3);
  store.inject(Fault::fails_from(4, ENOSPC));
  EXPECT_EQ(store.make_dirs("d").error().kind, ErrorKind::no_space);
  EXPECT_EQ(store.make_dirs("d").error().kind, ErrorKind::no_space);
  store.clear_faults();
  EXPECT_TRUE(store.make_dirs("d").ok());
}

TEST(Faulty, a_failed_sync_loses_its_bytes_for_good) {
  FaultyStore store;
  std::unique_ptr<WritableFile> file = store.create("a").value();
  store.sync_dir("").value();
  file->append(bytes_of("lost")).value();
  store.inject(Fault::fails(4, EIO));
  EXPECT_FALSE(file->sync().ok());
  file->append(bytes_of("kept")).value();
  file->sync().value();
  EXPECT_EQ(*read_text(*store.survivor(Unsynced::lost), "a"), std::string("\0\0\0\0kept", 8));
}

TEST(Faulty, dies_and_stays_dead) {
  FaultyStore store;
  store.inject(Fault::dies_before(2, 2));
  std::unique_ptr<WritableFile> file = store.create("a").value();
  EXPECT_THROW((void)file->append(bytes_of("abc")), SimulatedCrash);
  EXPECT_TRUE(store.crashed());
  EXPECT_THROW((void)file->sync(), SimulatedCrash);
  EXPECT_THROW((void)store.exists("a"), SimulatedCrash);
  EXPECT_THROW((void)store.list(""), SimulatedCrash);
  EXPECT_EQ(*read_text(*store.survivor(Unsynced::kept), "a"), "ab");

  FaultyStore other;
  other.inject(Fault::dies_after(1));
  EXPECT_THROW((void)other.make_dirs("d"), SimulatedCrash);
  EXPECT_TRUE(*other.survivor(Unsynced::kept)->exists("d"));
}

TEST(Faulty, flips_bits_on_read_and_at_rest) {
  FaultyStore store;
  write_whole(store, "a", "aaaa").value();
  store.inject(ReadFault{1, 0, 8});
  EXPECT_EQ(*read_text(store, "a"), "a`aa");
  EXPECT_EQ(*read_text(store, "a"), "aaaa");
  store.inject(ReadFault{3, EIO});
  EXPECT_EQ(read_text(store, "a").error().kind, ErrorKind::io);
  store.flip_bit("a", 3, 0).value();
  EXPECT_EQ(*read_text(store, "a"), "aaa`");
  EXPECT_EQ(*read_text(*store.survivor(Unsynced::lost), "a"), "aaa`");
}

TEST(Faulty, begins_with_what_another_store_holds) {
  const std::unique_ptr<Store> first = make_memory_store();
  first->make_dirs("d").value();
  write_whole(*first, "d/x", "1").value();
  FaultyStore store(*first);
  EXPECT_EQ(store.changing_calls(), 0);
  EXPECT_EQ(*read_text(*store.survivor(Unsynced::lost), "d/x"), "1");
}

// The contract of write_whole, at every crash point and for every outcome of unsynced data.
TEST(Faulty, write_whole_is_whole_or_absent_at_every_crash_point) {
  const auto act = [](Store& store) { write_whole(store, "a", "new, and longer than before").value(); };
  const std::unique_ptr<Store> before = make_memory_store();
  write_whole(*before, "a", "old").value();
  FaultyStore counted(*before);
  act(counted);
  ASSERT_EQ(counted.changing_calls(), 6);  // create, append, sync, close, rename, sync_dir
  for (std::int64_t call = 1; call <= counted.changing_calls(); ++call) {
    for (const Fault& fault : {Fault::dies_before(call), Fault::dies_before(call, 5), Fault::dies_after(call)}) {
      FaultyStore store(*before);
      store.inject(fault);
      EXPECT_THROW(act(store), SimulatedCrash);
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        const Unsynced mode = seed == 0 ? Unsynced::lost : seed == 1 ? Unsynced::kept : Unsynced::torn;
        const std::string text = *read_text(*store.survivor(mode, seed), "a");
        EXPECT_TRUE(text == "old" || text == "new, and longer than before") << call << ": " << text;
        const bool returned = call == 6 && fault.kind == Fault::Kind::dies_after;
        EXPECT_FALSE(returned && text == "old");
      }
    }
  }
}

// The same check catches a writer that does not sync its bytes.
TEST(Faulty, a_careless_writer_is_found) {
  FaultyStore store;
  write_whole(store, "a", "old").value();
  write(store, "a.tmp", "new", false);
  store.rename("a.tmp", "a").value();
  store.sync_dir("").value();
  EXPECT_EQ(*read_text(*store.survivor(Unsynced::lost), "a"), "");
}

}  // namespace
}  // namespace systole
