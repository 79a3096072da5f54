// Steps of rows by length: against a plain enumeration; the same rows on any number of readers; resumed anywhere.

#include "execute/data/bucket_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "execute/data/rows.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

constexpr std::int64_t kLongest = 40;
constexpr std::int32_t kEos = 2;

std::vector<std::string> sentences() {
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) texts.push_back("the quick brown fox jumps over the lazy dog " + std::to_string(i));
  return texts;
}

class Buckets : public testing::Test {
 protected:
  Buckets() : tokenizer_(Tokenizer::train({.vocabulary = 300}, sentences()).value()) {
    PhiloxStream random(3);
    for (const char* path : {"0.tokens", "1.tokens"}) {
      TokenShardWriter writer = TokenShardWriter::create(*store_, path, {tokenizer_.hash(), 300, kEos}).value();
      for (int i = 0; i < 150; ++i) {
        std::vector<std::int32_t> tokens;
        const std::uint64_t most = random.below(4) == 0 ? 60 : 14;
        for (std::uint64_t left = random.below(most); left > 0; --left)
          tokens.push_back(3 + static_cast<std::int32_t>(random.below(256)));
        tokens.push_back(kEos);
        writer.add(tokens, static_cast<std::int64_t>(tokens.size())).value();
      }
      (void)writer.finish().value();
    }
    data_ = packed(PackingRule::bucketed({.edges = {6, 13, 30}}));
  }

  std::shared_ptr<const PackedTokens> packed(const PackingRule& rule) {
    auto data = std::make_shared<PackedTokens>();
    for (const char* path : {"0.tokens", "1.tokens"}) data->shards.push_back(TokenShard::open(*store_, path).value());
    data->packing = pack(data->shards, tokenizer_, kLongest, rule).value();
    return data;
  }

  static RowReaderOptions options(std::int64_t batch_rows) {
    RowReaderOptions options;
    options.batch_rows = batch_rows;
    options.seed = 17;
    return options;
  }

  std::unique_ptr<Store> store_ = make_memory_store();
  Tokenizer tokenizer_;
  std::shared_ptr<const PackedTokens> data_;
};

using Row = std::vector<std::int32_t>;  // its labels, without padding

std::vector<Row> rows_of(const Batch& batch) {
  std::vector<Row> rows;
  for (std::int64_t r = 0; r < batch.batch_rows; ++r) {
    Row row;
    for (std::int64_t i = 0; i < batch.length; ++i) {
      const std::int32_t label = batch.labels[static_cast<std::size_t>(r * batch.length + i)];
      if (label >= 0) row.push_back(label);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// All that a batch holds.
std::vector<std::int32_t> all_of(const Batch& batch) {
  std::vector<std::int32_t> all{static_cast<std::int32_t>(batch.length), static_cast<std::int32_t>(batch.label_count)};
  for (const auto part : {batch.tokens, batch.labels, batch.segments, batch.positions, batch.types})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<Row> stored_rows(const PackedTokens& data) {
  RowReaderOptions once;
  once.pass = RowPass::once;
  std::shared_ptr<const PackedTokens> alias(std::shared_ptr<void>(), &data);
  RowReader reader = RowReader::open(alias, once).value();
  std::vector<Row> rows;
  while (const Batch* batch = reader.next().value()) {
    EXPECT_EQ(batch->length, kLongest);
    rows.push_back(rows_of(*batch)[0]);
  }
  return rows;
}

TEST_F(Buckets, RowsAreThoseOfPaddingSortedByEdge) {
  const std::vector<Row> padded = stored_rows(*packed(PackingPolicy::padded)), sorted = stored_rows(*data_);
  EXPECT_EQ(data_->packing.edges(), (std::vector<std::int64_t>{6, 13, 30, kLongest})) << "longer ones have T";
  std::vector<Row> want;
  std::int64_t below = 0, positions = 0;
  for (const std::int64_t edge : {6, 13, 30, 40}) {
    for (const Row& row : padded) {
      if (std::ssize(row) > edge || std::ssize(row) <= below) continue;
      want.push_back(row);
      positions += edge;
    }
    below = edge;
  }
  EXPECT_EQ(sorted, want);
  EXPECT_EQ(data_->packing.positions(), positions);
  EXPECT_EQ(data_->packing.tokens, packed(PackingPolicy::padded)->packing.tokens);
}

// Each row of the table in exactly one step of an epoch, in a step of its own bucket, which has its number of rows.
TEST_F(Buckets, AnEpochIsEveryRowOnceInStepsOfItsBucket) {
  const Packing& table = data_->packing;
  for (const std::int64_t batch : {1, 2, 5, 24}) {
    const BucketOrder order(table, batch, 7, false);
    std::int64_t steps = 0;
    for (std::size_t b = 0; b < table.buckets.size(); ++b) {
      const std::int64_t each = batch * (kLongest / table.buckets[b].edge);
      steps += (table.bucket_rows(b) + each - 1) / each;
    }
    EXPECT_EQ(order.steps(), steps);
    EXPECT_EQ(BucketOrder::steps_of(table, batch, false), steps);
    std::vector<std::vector<std::int64_t>> epochs;
    std::set<std::vector<std::size_t>> orders;             // buckets in the order of steps
    std::set<std::set<std::set<std::int64_t>>> divisions;  // of the rows among steps, whatever the order of steps
    for (const std::int64_t epoch : {0, 1, 1'000'000}) {
      std::vector<std::int64_t> rows, seen;
      std::set<std::pair<std::size_t, std::int64_t>> taken;
      std::set<std::set<std::int64_t>> division;
      std::vector<std::size_t> buckets;
      for (std::int64_t k = 0; k < order.steps(); ++k) {
        const BucketOrder::Step step = order.at(epoch, k);
        EXPECT_TRUE(taken.emplace(step.bucket, step.number).second);
        buckets.push_back(step.bucket);
        EXPECT_EQ(step.edge, table.buckets[step.bucket].edge);
        EXPECT_EQ(step.rows, batch * (kLongest / step.edge));
        std::set<std::int64_t> together;
        for (std::int64_t place = 0; place < step.rows; ++place) {
          const std::int64_t row = order.row(epoch, step, place);
          if (row < 0) continue;
          together.insert(row);
          ASSERT_GE(row, table.buckets[step.bucket].first_row);
          ASSERT_LT(row, table.buckets[step.bucket].first_row + table.bucket_rows(step.bucket));
          rows.push_back(row);
        }
        division.insert(std::move(together));
      }
      seen = rows;
      std::ranges::sort(seen);
      ASSERT_EQ(std::ssize(seen), table.rows());
      for (std::int64_t i = 0; i < table.rows(); ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], i);
      epochs.push_back(std::move(rows));
      divisions.insert(std::move(division));
      orders.insert(std::move(buckets));
    }
    EXPECT_TRUE(orders.size() == 3 || steps < 20) << "another order of buckets in each epoch";
    EXPECT_EQ(divisions.size(), 3u) << "other rows are together in each epoch";
    EXPECT_NE(epochs[0], epochs[1]);
  }
}

TEST_F(Buckets, WithoutARemainderEveryStepIsFull) {
  RowReaderOptions dropping = options(2);
  dropping.drop_remainder = true;
  RowReader reader = RowReader::open(data_, dropping).value();
  const std::int64_t steps = RowReader::positions(data_->packing, dropping);
  EXPECT_LT(steps, RowReader::positions(data_->packing, options(2)));
  std::map<std::int64_t, std::int64_t> by_edge;
  for (std::int64_t i = 0; i < steps; ++i) {
    const Batch& batch = *reader.next().value();
    ASSERT_EQ(batch.rows, batch.batch_rows);
    by_edge[batch.length] += batch.rows;
  }
  EXPECT_EQ(reader.cursor(), (RowCursor{1, 0}));
  for (std::size_t b = 0; b < data_->packing.buckets.size(); ++b) {
    const std::int64_t edge = data_->packing.buckets[b].edge, each = 2 * (kLongest / edge);
    EXPECT_EQ(by_edge[edge], data_->packing.bucket_rows(b) / each * each);
  }
  EXPECT_EQ(BucketOrder::steps_of(data_->packing, 1'000'000, true), 0);
  dropping.batch_rows = 40;
  const Result<RowReader> none = RowReader::open(data_, dropping);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("are no step of"), std::string::npos) << none.error().message;
}

TEST_F(Buckets, TheSameRowsOnAnyNumberOfReaders) {
  for (const bool masked : {false, true}) {
    constexpr std::int64_t kBatch = 24;
    RowReaderOptions all = options(kBatch);
    if (masked) all.masking = Masking{.share = 0.4, .seed = 5, .end = 300};
    RowReader whole = RowReader::open(data_, all).value();
    std::map<std::int64_t, std::vector<RowReader>> ranks;
    for (const std::int64_t count : {2, 3, 8}) {
      RowReaderOptions part = all;
      part.batch_rows = kBatch / count;
      part.step_rows = kBatch;
      for (part.first_row = 0; part.first_row < kBatch; part.first_row += part.batch_rows)
        ranks[count].push_back(RowReader::open(data_, part).value());
    }
    const std::vector<Row> stored = stored_rows(*data_);
    const BucketOrder order(data_->packing, kBatch, 17, false);
    const std::int64_t steps = order.steps();
    for (std::int64_t k = 0; k < 2 * steps + 1; ++k) {
      const Batch& batch = *whole.next().value();
      const std::vector<Row> want = rows_of(batch);
      const BucketOrder::Step step = order.at(k / steps, k % steps);
      for (std::int64_t place = 0; place < step.rows && !masked; ++place) {
        const std::int64_t row = order.row(k / steps, step, place);
        ASSERT_EQ(want[static_cast<std::size_t>(place)], row < 0 ? Row() : stored[static_cast<std::size_t>(row)]);
      }
      for (auto& [count, readers] : ranks) {
        std::vector<Row> rows;
        std::int64_t labels = 0, bytes = 0, filled = 0;
        for (RowReader& reader : readers) {
          const Batch& own = *reader.next().value();
          ASSERT_EQ(own.next, batch.next);
          ASSERT_EQ(own.length, batch.length);
          ASSERT_EQ(own.batch_rows * count, batch.batch_rows);
          for (Row& row : rows_of(own)) rows.push_back(std::move(row));
          labels += own.label_count, bytes += own.bytes, filled += own.rows;
        }
        ASSERT_EQ(rows, want) << count;
        ASSERT_EQ(labels, batch.label_count);
        ASSERT_EQ(bytes, batch.bytes);
        ASSERT_EQ(filled, batch.rows);
      }
    }
  }
}

TEST_F(Buckets, CountsLabelsBytesAndRowsOfAnEpoch) {
  RowReaderOptions endless = options(3);
  RowReader reader = RowReader::open(data_, endless).value();
  EXPECT_EQ(reader.allocated(), RowReader::planned(data_->packing, endless));
  std::int64_t labels = 0, bytes = 0, rows = 0;
  for (std::int64_t i = RowReader::positions(data_->packing, endless); i > 0; --i) {
    const Batch& batch = *reader.next().value();
    ASSERT_EQ(batch.labels.size(), static_cast<std::size_t>(batch.batch_rows * batch.length));
    ASSERT_EQ(batch.tokens.size(), batch.labels.size());
    ASSERT_EQ(batch.positions.size(), batch.labels.size());
    ASSERT_EQ(batch.label_count, std::ranges::count_if(batch.labels, [](std::int32_t label) { return label >= 0; }));
    labels += batch.label_count, bytes += batch.bytes, rows += batch.rows;
  }
  EXPECT_EQ(labels, data_->packing.tokens);
  EXPECT_EQ(bytes, data_->packing.bytes);
  EXPECT_EQ(rows, data_->packing.rows());
  EXPECT_EQ(reader.cursor(), (RowCursor{1, 0}));
}

// From every cursor of two epochs, on one thread and on several, masked or not; and again from a cursor after that.
TEST_F(Buckets, ResumeIsExactWithBuckets) {
  for (const bool masked : {false, true}) {
    RowReaderOptions chosen = options(6);
    if (masked) chosen.masking = Masking{.share = 0.4, .seed = 5, .end = 300};
    RowReader reader = RowReader::open(data_, chosen).value();
    EXPECT_EQ(reader.allocated(), RowReader::planned(data_->packing, chosen));
    std::vector<RowCursor> cursors{reader.cursor()};
    std::vector<std::vector<std::int32_t>> all;
    for (std::int64_t i = 0; i < 2 * RowReader::positions(data_->packing, chosen) + 4; ++i) {
      all.push_back(all_of(*reader.next().value()));
      cursors.push_back(reader.cursor());
    }
    EXPECT_EQ(cursors.back().epoch, 2);
    for (std::size_t at = 0; at + 4 <= all.size(); ++at) {
      RowReaderOptions threads = chosen;
      threads.readers = 1 + static_cast<std::int64_t>(at % 3);
      threads.queue_batches = 4;
      RowReader first = RowReader::open(data_, threads, cursors[at]).value();
      for (std::size_t i = 0; i < 2; ++i) ASSERT_EQ(all_of(*first.next().value()), all[at + i]) << at;
      RowReader second = RowReader::open(data_, chosen, first.cursor()).value();
      ASSERT_EQ(all_of(*second.next().value()), all[at + 2]);
      RowReader third = RowReader::open(data_, chosen, second.cursor()).value();
      ASSERT_EQ(all_of(*third.next().value()), all[at + 3]);
    }
  }
  EXPECT_FALSE(RowReader::open(data_, options(6), {0, RowReader::positions(data_->packing, options(6))}).ok());
}

TEST_F(Buckets, TheBestEdgesKeepToTheWasteAndAreReadBack) {
  const PackingRule rule = PackingRule::bucketed({.waste = 0.1, .shapes = 20, .align = 2});
  const Packing table = packed(rule)->packing;
  EXPECT_GT(table.edges().size(), 1u);
  EXPECT_LE(table.padding(), table.positions() / 10);
  for (const std::int64_t edge : table.edges()) EXPECT_EQ(edge % 2, 0);
  const Packing read = parse_packing(serialise(table), "t.rows").value();
  EXPECT_EQ(read, table);
  EXPECT_EQ(read.edges(), table.edges());
  const Packing one = packed(PackingRule::bucketed({.shapes = 1}))->packing;
  EXPECT_EQ(one.edges(), std::vector<std::int64_t>{kLongest});
  EXPECT_NE(one.inputs, table.inputs);
}

// The bytes of the table with this bucket in place of the b-th, checksums right.
std::vector<std::byte> lying(Packing table, std::size_t b, RowBucket bucket) {
  table.buckets[b] = bucket;
  return serialise(table);
}

TEST_F(Buckets, ATableThatLiesIsCorrupt) {
  const Packing& table = data_->packing;
  ASSERT_EQ(table.buckets.size(), 4u);
  EXPECT_TRUE(parse_packing(lying(table, 1, table.buckets[1]), "t.rows").ok());
  const std::int64_t first = table.buckets[1].first_row;
  for (const RowBucket bucket : {RowBucket{6, first}, RowBucket{5, first}, RowBucket{30, first}, RowBucket{-1, first},
                                 RowBucket{12, first}, RowBucket{14, first - 1}, RowBucket{13, first + 1},
                                 RowBucket{13, 0}, RowBucket{13, table.rows()}, RowBucket{13, -4}}) {
    const auto read = parse_packing(lying(table, 1, bucket), "t.rows");
    ASSERT_FALSE(read.ok()) << bucket.edge << " " << bucket.first_row;
    EXPECT_EQ(read.error().kind, ErrorKind::corrupt);
    EXPECT_EQ(read.error().where.file, "t.rows");
  }
  EXPECT_FALSE(parse_packing(lying(table, 3, {kLongest + 1, table.buckets[3].first_row}), "t.rows").ok());
  Packing none = table;
  none.buckets.clear();
  EXPECT_FALSE(parse_packing(serialise(none), "t.rows").ok());
  const std::vector<std::byte> whole = serialise(table);
  for (std::size_t at = 0; at < whole.size(); at += at < 128 ? 1 : 37) {
    std::vector<std::byte> damaged = whole;
    damaged[at] ^= static_cast<std::byte>(1 << at % 8);
    ASSERT_FALSE(parse_packing(damaged, "t.rows").ok()) << at;
    ASSERT_FALSE(parse_packing(std::span(whole).first(at), "t.rows").ok()) << at;
  }
}

}  // namespace
}  // namespace systole
