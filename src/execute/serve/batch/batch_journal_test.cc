#include "execute/serve/batch/batch_journal.h"

#include <gtest/gtest.h>

#include "ground/base/files.h"
#include "ground/base/testing/files.h"
#include "ground/store/testing/faulty.h"

namespace systole {
namespace {

const BatchFacts kFacts{.rows = 3, .model = "m", .input = "i", .options = "o"};
constexpr const char* kRows = "out.jsonl.journal/rows";

std::unique_ptr<BatchJournal> opened(Store& store, const BatchFacts& facts = kFacts, std::int64_t now = 5) {
  return BatchJournal::open({store, "out.jsonl"}, facts, now).value();
}
BatchRecord record(std::size_t row, bool failed = false) {
  return {.row = row, .prompt_tokens = 2, .answer_tokens = 3, .failed = failed, .line = fmt::format("line {}", row)};
}
void add(Store& store, const std::string& text) {
  const auto file = store.append_to(kRows).value();
  file->append(std::as_bytes(std::span(text))).value();
}

TEST(BatchJournal, goes_on_and_writes_the_output_in_the_order_of_rows) {
  const std::unique_ptr<Store> store = make_memory_store();
  {
    const auto journal = opened(*store);
    journal->append(record(2)).value();
    journal->append(record(0, true)).value();
  }
  {
    const auto journal = opened(*store, kFacts, 99);
    EXPECT_EQ(journal->began(), 5);
    EXPECT_TRUE(journal->has(0) && !journal->has(1) && journal->has(2));
    EXPECT_EQ(journal->totals().rows, 2);
    EXPECT_EQ(journal->totals().failed, 1);
    EXPECT_EQ(journal->totals().answer_tokens, 6);
    EXPECT_EQ(journal->dropped(), 0);
    journal->append(record(1)).value();
    EXPECT_FALSE(*store->exists("out.jsonl"));
    journal->finish().value();
  }
  EXPECT_EQ(*read_text(*store, "out.jsonl"), "line 0\nline 1\nline 2\n");
  const auto again = opened(*store);
  EXPECT_TRUE(again->is_finished());
  EXPECT_TRUE(again->has(1));
  EXPECT_EQ(again->totals().rows, 3);
  EXPECT_EQ(again->totals().failed, 1);
  EXPECT_EQ(read_text(*store, kRows)->find("row "), std::string::npos) << "the output has the rows";
}

TEST(BatchJournal, begins_anew_once_the_finished_output_is_gone) {
  const std::unique_ptr<Store> store = make_memory_store();
  {
    const auto journal = opened(*store);
    for (std::size_t row = 0; row < 3; ++row) journal->append(record(row)).value();
    journal->finish().value();
  }
  store->remove("out.jsonl").value();
  const auto again = opened(*store, kFacts, 99);
  EXPECT_FALSE(again->is_finished());
  EXPECT_FALSE(again->has(1));
  EXPECT_EQ(again->began(), 99);
}

TEST(BatchJournal, begun_anew_says_nothing_of_the_table_of_the_run_before) {
  const std::unique_ptr<Store> store = make_memory_store();
  const auto finish = [&] {
    const auto journal = opened(*store);
    for (std::size_t row = 0; row < 3; ++row) journal->append(record(row)).value();
    journal->finish([&] { return write_whole(*store, "out.jsonl.journal/table", "t"); }).value();
  };
  finish();
  EXPECT_TRUE(opened(*store)->is_finished());
  EXPECT_TRUE(*store->exists("out.jsonl.journal/table"));
  store->remove("out.jsonl").value();
  EXPECT_FALSE(opened(*store)->is_finished());
  EXPECT_FALSE(*store->exists("out.jsonl.journal/table"));
}

// Cut at every byte of its last line, and behind it.
TEST(BatchJournal, drops_a_torn_last_line) {
  const std::unique_ptr<Store> whole = make_memory_store();
  opened(*whole)->append(record(2)).value();
  const std::string before = *read_text(*whole, kRows);
  opened(*whole)->append(record(0)).value();
  const std::string after = *read_text(*whole, kRows);
  for (std::size_t size = before.size(); size <= after.size(); ++size) {
    const std::unique_ptr<Store> store = make_memory_store();
    store->make_dirs("out.jsonl.journal").value();
    write_whole(*store, kRows, std::string_view(after).substr(0, size)).value();
    {
      const auto journal = opened(*store);
      EXPECT_TRUE(journal->has(2));
      EXPECT_EQ(journal->has(0), size == after.size()) << size;
      EXPECT_EQ(journal->dropped(), size == before.size() || size == after.size() ? 0 : 1) << size;
      for (std::size_t row = 0; row < 3; ++row) {
        if (!journal->has(row)) journal->append(record(row)).value();
      }
    }
    const auto again = opened(*store);  // what came behind the torn line is there
    EXPECT_EQ(again->totals().rows, 3) << size;
    again->finish().value();
    EXPECT_EQ(*read_text(*store, "out.jsonl"), "line 0\nline 1\nline 2\n") << size;
  }
}

TEST(BatchJournal, ignores_what_is_damaged_and_what_comes_twice) {
  const std::unique_ptr<Store> store = make_memory_store();
  opened(*store)->append(record(1)).value();
  std::string text = *read_text(*store, kRows);
  add(*store, text.substr(text.find('\n') + 1));  // row 1 again
  add(*store, "00000000 row 0 1 1 0 forged\n");
  add(*store, std::string(64, '\0') + "\n");
  const auto journal = opened(*store);
  EXPECT_EQ(journal->totals().rows, 1);
  EXPECT_FALSE(journal->has(0));
  EXPECT_EQ(journal->dropped(), 2);
}

// Lines longer than what is read at once.
TEST(BatchJournal, takes_long_lines) {
  const std::unique_ptr<Store> store = make_memory_store();
  const std::string longer(3'000'000, 'x');
  {
    const auto journal = opened(*store);
    for (std::size_t row = 0; row < 3; ++row) {
      BatchRecord made = record(row);
      made.line = longer.substr(row);
      journal->append(made).value();
    }
  }
  opened(*store)->finish().value();
  EXPECT_EQ(*read_text(*store, "out.jsonl"), longer + "\n" + longer.substr(1) + "\n" + longer.substr(2) + "\n");
}

TEST(BatchJournal, is_of_one_job_and_overwrites_nothing) {
  const std::unique_ptr<Store> store = make_memory_store();
  opened(*store)->append(record(1)).value();
  const auto refused = [&](const BatchFacts& facts) {
    return BatchJournal::open({*store, "out.jsonl"}, facts, 5).error();
  };
  for (const auto& [facts, differs] : {std::pair(BatchFacts{3, "x", "i", "o"}, "its model was another"),
                                       std::pair(BatchFacts{4, "m", "x", "o"}, "its input was another"),
                                       std::pair(BatchFacts{3, "m", "i", "x"}, "its options were others")}) {
    const Error error = refused(facts);
    EXPECT_EQ(error.kind, ErrorKind::exists);
    EXPECT_NE(error.message.find(differs), std::string::npos) << error.message;
    EXPECT_NE(error.hint.find("rm -rf out.jsonl.journal out.jsonl"), std::string::npos);
  }
  write_whole(*store, kRows, "nothing of ours\n").value();
  EXPECT_EQ(refused(kFacts).kind, ErrorKind::corrupt);
  EXPECT_EQ(*read_text(*store, kRows), "nothing of ours\n");

  const std::unique_ptr<Store> other = make_memory_store();
  write_whole(*other, "out.jsonl", "precious").value();
  EXPECT_EQ(BatchJournal::open({*other, "out.jsonl"}, kFacts, 5).error().kind, ErrorKind::exists);
  EXPECT_EQ(*read_text(*other, "out.jsonl"), "precious");
}

TEST(BatchJournal, replaces_no_output_that_another_program_made) {
  const std::unique_ptr<Store> store = make_memory_store();
  opened(*store)->append(record(0)).value();
  write_whole(*store, "out.jsonl", "precious").value();
  EXPECT_EQ(BatchJournal::open({*store, "out.jsonl"}, kFacts, 5).error().kind, ErrorKind::exists)
      << "before the other rows are computed";
  store->remove("out.jsonl").value();
  {
    const auto journal = opened(*store);
    for (std::size_t row = 1; row < 3; ++row) journal->append(record(row)).value();
    write_whole(*store, "out.jsonl", "precious").value();
    const Error refused = journal->finish().error();
    EXPECT_EQ(refused.kind, ErrorKind::exists);
    EXPECT_NE(refused.hint.find("move it away"), std::string::npos);
    EXPECT_EQ(*read_text(*store, "out.jsonl"), "precious");
  }
  write_whole(*store, "out.jsonl", "line 0\nline 1\nline X\n").value();
  const auto journal = opened(*store);
  EXPECT_EQ(journal->finish().error().kind, ErrorKind::exists) << "of the same size";
  store->remove("out.jsonl").value();
  journal->finish().value();
  EXPECT_EQ(*read_text(*store, "out.jsonl"), "line 0\nline 1\nline 2\n");
}

TEST(BatchJournal, knows_its_output_where_it_was_killed_before_it_said_so) {
  const std::unique_ptr<Store> store = make_memory_store();
  {
    const auto journal = opened(*store);
    for (std::size_t row = 0; row < 3; ++row) journal->append(record(row)).value();
    const std::string before = *read_text(*store, kRows);
    journal->finish().value();
    write_whole(*store, kRows, before).value();
  }
  {
    const auto journal = opened(*store);
    EXPECT_FALSE(journal->is_finished());
    journal->finish().value();
  }
  EXPECT_TRUE(opened(*store)->is_finished());
  EXPECT_EQ(*read_text(*store, "out.jsonl"), "line 0\nline 1\nline 2\n");
}

TEST(BatchJournal, writes_no_output_again_where_only_what_follows_failed) {
  FaultyStore store;
  const auto journal = opened(store);
  for (std::size_t row = 0; row < 3; ++row) journal->append(record(row)).value();
  EXPECT_EQ(journal->finish([] { return Status(error(ErrorKind::exists, "a table")); }).error().message, "a table");
  const std::size_t before = store.calls().size();
  journal->finish().value();
  const std::vector<std::string> calls = store.calls();
  for (std::size_t i = before; i < calls.size(); ++i)
    EXPECT_FALSE(calls[i].starts_with("rename") && calls[i].ends_with("out.jsonl")) << calls[i];
  EXPECT_TRUE(journal->is_finished());
}

TEST(BatchJournal, of_another_job_without_a_row_is_no_obstacle) {
  const std::unique_ptr<Store> store = make_memory_store();
  opened(*store);
  opened(*store, {3, "m", "i", "x"}, 7)->append(record(1)).value();
  EXPECT_EQ(opened(*store, {3, "m", "i", "x"})->began(), 7);
  EXPECT_EQ(BatchJournal::open({*store, "out.jsonl"}, kFacts, 5).error().kind, ErrorKind::exists);
}

// Another process does all of the job behind the first look at the files.
class Overtaken : public FaultyStore {
 public:
  std::function<void()> meanwhile;
  Result<bool> exists(std::string_view path) override {
    const Result<bool> found = FaultyStore::exists(path);
    if (meanwhile) std::exchange(meanwhile, {})();
    return found;
  }
};

TEST(BatchJournal, knows_the_output_of_a_process_that_was_faster) {
  Overtaken store;
  store.meanwhile = [&store] {
    const auto journal = opened(store);
    for (std::size_t row = 0; row < 3; ++row) journal->append(record(row)).value();
    journal->finish().value();
  };
  EXPECT_TRUE(opened(store)->is_finished());
}

TEST(BatchJournal, is_locked) {
  const TemporaryFolder folder;
  const std::unique_ptr<Store> store = open_posix_store(folder.path()).value();
  const auto journal = opened(*store);
  EXPECT_EQ(BatchJournal::open({*store, "out.jsonl"}, kFacts, 5).error().kind, ErrorKind::busy);
}

}  // namespace
}  // namespace systole
