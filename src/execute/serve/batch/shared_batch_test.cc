// Processes that join and leave a batch: each row exactly once, in order, whoever computed it.
#include "execute/serve/batch/shared_batch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <random>
#include <thread>

namespace systole {
namespace {

constexpr std::size_t kRows = 41;

std::string line(std::size_t row) {
  return fmt::format(R"({{"index":{},"custom_id":null,"response":{{}},"error":null}})", row);
}

class SharedBatchTest : public testing::Test {
 protected:
  // What a process does; it counts rows that it computes.
  SharedBatch batch() {
    SharedBatch batch{.output = {*store_, "out.jsonl"}, .rows = kRows, .shards = 8, .now = 1'000};
    batch.facts = [this](const std::optional<BatchShard>& shard) {
      return BatchFacts{shard.value_or(BatchShard()).rows(kRows), "model", input_, shard ? to_string(*shard) : "whole"};
    };
    batch.compute = [this](const BatchShard& shard, BatchJournal& journal, std::int64_t) -> Result<bool> {
      for (std::size_t place = 0; place < shard.rows(kRows); ++place)
        if (!journal.has(place)) TRY(compute(shard, place, journal));
      return true;
    };
    batch.wait = [](std::size_t) { return false; };
    return batch;
  }
  Status compute(const BatchShard& shard, std::size_t place, BatchJournal& journal) {
    ++computed_;
    return journal.append({.row = place, .prompt_tokens = 2, .line = line(shard.row(place))});
  }
  std::string output() const { return read_text(*store_, "out.jsonl").value(); }
  static std::string expected() {
    std::string text;
    for (std::size_t row = 0; row < kRows; ++row) text += line(row) + "\n";
    return text;
  }
  std::vector<std::string> files() const { return store_->list("").value(); }

  const std::unique_ptr<Store> store_ = make_memory_store();
  std::string input_ = "input";
  std::atomic<std::size_t> computed_ = 0;
};

TEST_F(SharedBatchTest, one_process_computes_all_and_removes_the_shards) {
  const SharedBatchEnd end = run_shared(batch()).value();
  EXPECT_TRUE(end.is_finished && end.is_joined);
  EXPECT_EQ(end.shards, 8U);
  EXPECT_EQ(end.computed, 8U);
  EXPECT_EQ(end.totals.rows, std::int64_t{kRows});
  EXPECT_EQ(end.totals.prompt_tokens, 2 * std::int64_t{kRows});
  EXPECT_EQ(output(), expected());
  EXPECT_EQ(files(), (std::vector<std::string>{"out.jsonl", "out.jsonl.journal/"}));

  const SharedBatchEnd again = run_shared(batch()).value();
  EXPECT_TRUE(again.is_finished && !again.is_joined);
  EXPECT_EQ(computed_, kRows);
}

// The first is in its first shard while two more come, take the others and leave; it ends what is left.
TEST_F(SharedBatchTest, others_take_what_nobody_has) {
  SharedBatch first = batch();
  std::vector<std::size_t> taken;
  first.compute = [&, own = first.compute](const BatchShard& shard, BatchJournal& journal, std::int64_t began) {
    if (shard.index == 0) {
      SharedBatch second = batch();
      std::size_t left = 0;
      second.wait = [&](std::size_t shards) {
        left = shards;
        return false;
      };
      const SharedBatchEnd end = run_shared(second).value();
      EXPECT_FALSE(end.is_finished);
      EXPECT_EQ(end.computed, 7U);
      EXPECT_EQ(left, 1U);
    }
    taken.push_back(shard.index);
    return own(shard, journal, began);
  };
  const SharedBatchEnd end = run_shared(first).value();
  EXPECT_EQ(taken, std::vector<std::size_t>{0});
  EXPECT_TRUE(end.is_joined);
  EXPECT_EQ(output(), expected());
  EXPECT_EQ(computed_, kRows);
}

// Threads that die at random places, each replaced by another. A row whose line is in a journal is not computed again.
TEST_F(SharedBatchTest, keeps_each_row_once_however_processes_die) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    store_->remove("out.jsonl").value();
    computed_ = 0;
    std::atomic<int> deaths = 12;
    std::mutex mutex;
    std::mt19937 random(seed);
    const auto dies = [&] {
      const std::lock_guard lock(mutex);
      return random() % 10 == 0 && deaths-- > 0;
    };
    SharedBatch each = batch();
    each.compute = [&](const BatchShard& shard, BatchJournal& journal, std::int64_t) -> Result<bool> {
      for (std::size_t place = 0; place < shard.rows(kRows); ++place) {
        if (journal.has(place)) continue;
        if (dies()) return error(ErrorKind::io, "died");
        TRY(compute(shard, place, journal));
      }
      if (dies()) return error(ErrorKind::io, "died");
      return true;
    };
    each.wait = [](std::size_t) {
      std::this_thread::yield();
      return true;
    };
    std::vector<std::jthread> processes;
    std::atomic<int> joined = 0;
    for (int i = 0; i < 3; ++i)
      processes.emplace_back([&] {
        for (;;) {
          const Result<SharedBatchEnd> end = run_shared(each);
          if (!end.ok() && end.error().message == "died") continue;
          ASSERT_TRUE(end.ok()) << to_string(end.error());
          ASSERT_TRUE(end->is_finished);
          if (end->is_joined) ++joined;
          return;
        }
      });
    processes.clear();
    EXPECT_EQ(output(), expected()) << "seed " << seed;
    EXPECT_EQ(computed_, kRows) << "seed " << seed;
    EXPECT_EQ(joined, 1) << "seed " << seed;
  }
}

TEST_F(SharedBatchTest, another_job_takes_no_part_and_counts_for_a_price) {
  SharedBatch first = batch();
  first.compute = [&, own = first.compute](const BatchShard& shard, BatchJournal& journal,
                                           std::int64_t began) -> Result<bool> {
    if (shard.index == 2) {
      compute(shard, 0, journal).value();
      return false;
    }
    return own(shard, journal, began);
  };
  EXPECT_FALSE(run_shared(first).value().is_finished);
  const auto copy = make_memory_store();
  const auto whole = BatchJournal::open({*copy, "out.jsonl"}, batch().facts({}), 0).value();
  count_shards(batch(), *whole).value();
  EXPECT_EQ(whole->totals().rows, 6 + 5 + 1);

  input_ = "other";
  const Error other = run_shared(batch()).error();
  EXPECT_EQ(other.message, "shards of 'out.jsonl' are there, of another job: its input was another");
  EXPECT_NE(other.hint.find("rm -rf out.jsonl.shards"), std::string::npos);
  input_ = "input";
  SharedBatch more = batch();
  more.shards = 3;  // as many as there are
  EXPECT_EQ(run_shared(more).value().shards, 8U);
  EXPECT_EQ(output(), expected());
  EXPECT_EQ(computed_, kRows);
}

TEST(Shards, are_as_many_as_rows_allow) {
  EXPECT_EQ(shards_for(0, 0), 1U);
  EXPECT_EQ(shards_for(0, 12), 12U);
  EXPECT_EQ(shards_for(0, 1'000), 16U);
  EXPECT_EQ(shards_for(0, 6'400), 100U);
  EXPECT_EQ(shards_for(0, 1'000'000), 256U);
  EXPECT_EQ(shards_for(40, 1'000), 40U);
  EXPECT_EQ(shards_for(40, 12), 12U);
}

}  // namespace
}  // namespace systole
