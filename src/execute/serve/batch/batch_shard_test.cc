#include "execute/serve/batch/batch_shard.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(BatchShard, each_row_is_of_one_shard_and_has_a_place_there) {
  for (const std::size_t count : {1U, 3U, 7U}) {
    for (const std::size_t all : {0U, 1U, 6U, 7U, 8U}) {
      std::size_t rows = 0;
      for (std::size_t index = 0; index < count; ++index) {
        const BatchShard shard{index, count};
        std::size_t place = 0;
        for (std::size_t row = 0; row < all; ++row) {
          if (!shard.has(row)) continue;
          EXPECT_EQ(shard.place(row), place);
          EXPECT_EQ(shard.row(place++), row);
        }
        EXPECT_EQ(shard.rows(all), place);
        rows += place;
      }
      EXPECT_EQ(rows, all);
    }
  }
}

TEST(BatchShard, is_written_as_its_number_of_how_many) {
  const BatchShard shard = parse_batch_shard("2/10").value();
  EXPECT_EQ(shard.index, 2U);
  EXPECT_EQ(shard.count, 10U);
  EXPECT_EQ(to_string(shard), "2/10");
  EXPECT_EQ(shard_file("answers.v1.jsonl", shard), "answers.v1.2-of-10.jsonl");
  EXPECT_EQ(shard_file("answers", shard), "answers.2-of-10");
  for (const char* text :
       {"", "1", "3/3", "-1/3", "1/", "/3", "1/3/4", "1/ 3", "0/0", "0/10001", "0/99999999999999999999"})
    EXPECT_FALSE(parse_batch_shard(text).ok()) << text;
}

class ShardsOfFiles : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text = "") const { write_whole(*store_, name, text).value(); }
  Error refused() const { return find_shards(*store_, "a.jsonl").error(); }
  const std::unique_ptr<Store> store_ = make_memory_store();
};

TEST_F(ShardsOfFiles, are_found_by_their_names) {
  for (const char* name :
       {"a.jsonl", "a.old.jsonl", "a.x-of-3.jsonl", "b.0-of-9.jsonl", "a.0-of-9.csv", "a.-of-.jsonl"})
    write(name);
  EXPECT_EQ(refused().kind, ErrorKind::not_found);
  write("a.2-of-3.jsonl");
  EXPECT_EQ(find_shards(*store_, "a.jsonl").value(), 3U);
  write("a.0-of-3.jsonl");
  EXPECT_EQ(find_shards(*store_, "a.jsonl").value(), 3U);
  write("a.0-of-2.jsonl");
  EXPECT_EQ(refused().message, "'a.0-of-2.jsonl' and 'a.0-of-3.jsonl' are shards of two different jobs");
}

TEST_F(ShardsOfFiles, that_are_none_are_refused) {
  for (const char* name : {"a.3-of-3.jsonl", "a.00-of-3.jsonl", "a.0-of-0.jsonl"}) {
    write(name);
    EXPECT_EQ(refused().message, fmt::format("'{}' is named as a shard of 'a.jsonl', and is none", name));
    store_->remove(name).value();
  }
}

std::string line(std::size_t row, const std::string& error = "null") {
  return fmt::format(R"({{"index":{},"custom_id":null,"response":null,"error":{}}})", row, error) + "\n";
}

TEST_F(ShardsOfFiles, have_the_lines_of_their_rows_and_no_others) {
  const BatchShard shard{1, 3};  // of five rows: 1 and 4
  const BatchOutput file{*store_, "a.1-of-3.jsonl"};
  const BatchFacts facts{5, "m", "i", "o"};
  for (const std::string& text : {line(1), line(1) + line(4) + line(7), line(1) + line(1), line(4) + line(1), line(0),
                                  line(1) + line(4).substr(0, 20), std::string()}) {
    write(file.name, text);
    const auto whole = BatchJournal::open({*store_, "a.jsonl"}, facts, 0).value();
    const Status joined = join_shard(file, shard, 5, {}, *whole);
    ASSERT_FALSE(joined.ok()) << text;
    EXPECT_EQ(joined.error().kind, ErrorKind::corrupt) << text;
    EXPECT_NE(joined.error().message.find("of 'a.1-of-3.jsonl' is not that of row "), std::string::npos) << text;
  }
  write(file.name, line(1) + line(4, "{\"message\":\"x\",\"code\":null}"));
  const auto whole = BatchJournal::open({*store_, "b.jsonl"}, facts, 0).value();
  join_shard(file, shard, 5, {.prompt_tokens = 9}, *whole).value();
  EXPECT_FALSE(whole->has(0));
  EXPECT_TRUE(whole->has(1) && whole->has(4));
  EXPECT_EQ(whole->totals().failed, 1);
  EXPECT_EQ(whole->totals().prompt_tokens, 9);
}

}  // namespace
}  // namespace systole
