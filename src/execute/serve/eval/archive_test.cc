#include "execute/serve/eval/archive.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "ground/store/sha256.h"
#include "ground/store/testing/faulty.h"

namespace systole {
namespace {

ArchivedEntry add(Store& store, const std::string& what) {
  return append_entry(store, Node::map({{"time", what}}), "{\"answer\": \"" + what + "\"}\n").value();
}

std::unique_ptr<Store> archive_of(int entries) {
  std::unique_ptr<Store> store = make_memory_store();
  for (int i = 1; i <= entries; ++i) add(*store, "night " + std::to_string(i));
  return store;
}

void replace(Store& store, const std::string& path, const std::string& from, const std::string& to) {
  std::string text = read_text(store, path).value();
  ASSERT_NE(text.find(from), text.npos) << text;
  text.replace(text.find(from), from.size(), to);
  write_whole(store, path, text).value();
}

// The numbers of the entries that do not fit.
std::vector<std::int64_t> wrong_in(Store& store) {
  std::vector<std::int64_t> numbers;
  for (const ArchiveReport::Wrong& one : verify_archive(store).value().wrong) numbers.push_back(one.entry);
  return numbers;
}
using Numbers = std::vector<std::int64_t>;

TEST(EvalArchive, each_entry_has_the_hash_of_the_one_before) {
  const std::unique_ptr<Store> store = archive_of(2);
  const ArchivedEntry third = add(*store, "night 3");
  EXPECT_EQ(third.number, 3);
  const std::string second = read_text(*store, "00000002.jsonl").value(),
                    last = read_text(*store, "00000003.jsonl").value();
  EXPECT_EQ(last, "{\"archive\":1,\"entry\":3,\"previous\":\"" + sha256_of(second) +
                      "\",\"time\":\"night 3\"}\n{\"answer\": \"night 3\"}\n");
  EXPECT_EQ(third.sha256, sha256_of(last));
  const ArchiveReport report = verify_archive(*store).value();
  EXPECT_EQ(report.entries, 3);
  EXPECT_EQ(report.last.sha256, third.sha256);
  EXPECT_TRUE(report.wrong.empty());
  EXPECT_EQ(last_entry(*store)->number, 3);
}

TEST(EvalArchive, what_was_changed_is_named) {
  const auto changed = [](const auto& change) {
    const std::unique_ptr<Store> store = archive_of(5);
    change(*store);
    return wrong_in(*store);
  };
  const auto same = [](Store&) {};
  EXPECT_EQ(changed(same), Numbers{});
  EXPECT_EQ(changed([](Store& s) { replace(s, "00000002.jsonl", "night 2\"}\n", "night X\"}\n"); }), Numbers{2});
  EXPECT_EQ(changed([](Store& s) { replace(s, "00000002.jsonl", "\"previous\":\"", "\"previous\":\"a"); }), Numbers{2});
  EXPECT_EQ(changed([](Store& s) { replace(s, "00000001.jsonl", "{", "["); }), Numbers{1});
  EXPECT_EQ(changed([](Store& s) { replace(s, "00000005.jsonl", "night", "might"); }), Numbers{5}) << "by head.json";
  EXPECT_EQ(changed([](Store& s) {
              replace(s, "00000004.jsonl", "night", "might");
              replace(s, "00000002.jsonl", "night", "might");
            }),
            (Numbers{2, 4}));
  EXPECT_EQ(changed([](Store& s) { s.remove("00000003.jsonl").value(); }), Numbers{3});
  EXPECT_EQ(changed([](Store& s) { s.remove("00000001.jsonl").value(); }), Numbers{1}) << "head.json did not remove it";
  EXPECT_EQ(changed([](Store& s) { s.remove("00000005.jsonl").value(); }), Numbers{5});
  EXPECT_EQ(changed([](Store& s) { s.rename("00000004.jsonl", "00000003.jsonl").value(); }), (Numbers{3, 4}));
  EXPECT_EQ(changed([](Store& s) { write_whole(s, "00000006.jsonl", "{\"entry\":6}\n").value(); }), Numbers{6});
  EXPECT_EQ(changed([](Store& s) { s.remove("head.json").value(); }), (Numbers{2, 3, 4, 5}));
  const std::unique_ptr<Store> store = archive_of(2);
  replace(*store, "head.json", "\"last\"", "\"list\"");
  EXPECT_EQ(verify_archive(*store).error().kind, ErrorKind::corrupt);
  EXPECT_EQ(append_entry(*store, Node::map(), "").error().kind, ErrorKind::corrupt);
}

TEST(EvalArchive, retention_leaves_a_chain_and_hides_nothing) {
  const std::unique_ptr<Store> store = archive_of(5);
  EXPECT_EQ(keep_newest(*store, 5).value(), 0);
  EXPECT_EQ(keep_newest(*store, 2).value(), 3);
  EXPECT_FALSE(store->exists("00000003.jsonl").value());
  EXPECT_EQ(add(*store, "night 6").number, 6);
  EXPECT_EQ(keep_newest(*store, 2).value(), 1);
  const ArchiveReport report = verify_archive(*store).value();
  EXPECT_EQ(report.entries, 2);
  EXPECT_EQ(report.removed, 4);
  EXPECT_TRUE(report.wrong.empty());
  replace(*store, "00000005.jsonl", "night", "might");
  EXPECT_EQ(keep_newest(*store, 1).error().kind, ErrorKind::corrupt) << "a changed entry is not made to vanish";
  EXPECT_EQ(wrong_in(*store), Numbers{5});
  replace(*store, "00000005.jsonl", "might", "night");
  replace(*store, "head.json", "\"removed\":{\"entry\":4,\"sha256\":\"", "\"removed\":{\"entry\":4,\"sha256\":\"a");
  EXPECT_EQ(wrong_in(*store), Numbers{5}) << "it follows another entry than head.json says";
  EXPECT_EQ(keep_newest(*store, 1).error().kind, ErrorKind::corrupt);
}

// As if its writer had been killed before it wrote head.json; but it is of another archive.
TEST(EvalArchive, an_entry_that_follows_another_is_not_taken_for_the_newest) {
  const std::unique_ptr<Store> store = archive_of(2), other = make_memory_store();
  for (const char* night : {"night 1", "another night", "night 3"}) add(*other, night);
  write_whole(*store, archive_file(3), read_text(*other, archive_file(3)).value()).value();
  EXPECT_EQ(wrong_in(*store), Numbers{3});
  EXPECT_EQ(last_entry(*store).error().kind, ErrorKind::corrupt);
}

TEST(EvalArchive, holds_whenever_the_machine_dies) {
  const std::unique_ptr<Store> two = archive_of(2);
  const auto night = [](Store& store) {
    add(store, "night 3");
    keep_newest(store, 1).value();
  };
  FaultyStore counted(*two);
  night(counted);
  const std::int64_t calls = counted.changing_calls();
  ASSERT_GT(calls, 8);
  for (std::int64_t call = 1; call <= calls; ++call) {
    for (const Unsynced mode : {Unsynced::lost, Unsynced::kept, Unsynced::torn}) {
      FaultyStore store(*two);
      store.inject(Fault::dies_before(call));
      EXPECT_THROW(night(store), SimulatedCrash);
      const std::unique_ptr<Store> left = store.survivor(mode, static_cast<std::uint64_t>(call));
      ASSERT_EQ(wrong_in(*left), Numbers{}) << "call " << call;
      const std::int64_t last = last_entry(*left).value().number;
      EXPECT_TRUE(last == 2 || last == 3) << last;
      EXPECT_EQ(add(*left, "next").number, last + 1);
      EXPECT_TRUE(keep_newest(*left, 2).ok());
      EXPECT_EQ(wrong_in(*left), Numbers{}) << "call " << call;
      EXPECT_EQ(verify_archive(*left).value().entries, 2);
    }
  }
}

TEST(EvalArchive, a_full_disk_is_told_and_leaves_the_chain) {
  const std::unique_ptr<Store> two = archive_of(2);
  for (std::int64_t call = 1; call <= 8; ++call) {
    FaultyStore store(*two);
    store.inject(Fault::fails_from(call, ENOSPC));
    const Result<ArchivedEntry> added = append_entry(store, Node::map(), "{}\n");
    ASSERT_FALSE(added.ok()) << call;
    EXPECT_EQ(added.error().kind, ErrorKind::no_space);
    store.clear_faults();
    EXPECT_EQ(wrong_in(store), Numbers{}) << "call " << call;
    EXPECT_TRUE(append_entry(store, Node::map(), "").ok());
    EXPECT_EQ(wrong_in(store), Numbers{}) << "call " << call;
  }
}

}  // namespace
}  // namespace systole
