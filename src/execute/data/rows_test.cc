#include "execute/data/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "ground/base/philox.h"

namespace systole {
namespace {

TEST(RowOrder, EachEpochIsAPermutation) {
  for (const std::int64_t rows : {1, 2, 3, 4, 5, 16, 17, 1000, 4097}) {
    const RowOrder order(rows, 42, true);
    for (const std::int64_t epoch : {0, 1, 1'000'000}) {
      std::set<std::int64_t> seen;
      for (std::int64_t i = 0; i < rows; ++i) seen.insert(order.at(epoch, i));
      EXPECT_EQ(static_cast<std::int64_t>(seen.size()), rows);
      EXPECT_EQ(*seen.begin(), 0);
      EXPECT_EQ(*seen.rbegin(), rows - 1);
    }
  }
}

TEST(RowOrder, SeedsAndEpochsDiffer) {
  const RowOrder a(1000, 1, true), b(1000, 2, true), plain(1000, 1, false);
  int same_seed = 0, same_epoch = 0, same_place = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    same_seed += a.at(0, i) == b.at(0, i) ? 1 : 0;
    same_epoch += a.at(0, i) == a.at(1, i) ? 1 : 0;
    same_place += a.at(0, i) == i ? 1 : 0;
    EXPECT_EQ(plain.at(5, i), i);
  }
  for (const int same : {same_seed, same_epoch, same_place}) EXPECT_LT(same, 12);  // one is expected
}

TEST(RowOrder, WhereARowGoesIsEven) {
  // The place of row 0 over 12,800 epochs: 16 cells of 800, chi-squared with 15 degrees of freedom.
  const RowOrder order(64, 9, true);
  std::vector<int> cells(16);
  for (std::int64_t epoch = 0; epoch < 12'800; ++epoch) ++cells[static_cast<std::size_t>(order.at(epoch, 0) / 4)];
  double chi = 0;
  for (const int count : cells) chi += (count - 800.0) * (count - 800.0) / 800.0;
  EXPECT_LT(chi, 45);  // p = 1e-4
}

constexpr std::int64_t kRowLength = 16;
constexpr std::int32_t kEos = 2;

class Rows : public testing::Test {
 protected:
  Rows() {
    const auto tokenizer = Tokenizer::train({.vocabulary = 300}, std::vector<std::string>{sentence()}).value();
    PhiloxStream random(8);
    auto data = std::make_shared<PackedTokens>();
    for (const char* path : {"0.tokens", "1.tokens", "2.tokens"}) {
      TokenShardWriter writer = TokenShardWriter::create(*store_, path, {tokenizer.hash(), 300, kEos}).value();
      for (int i = 0; i < 100; ++i) {
        std::vector<std::int32_t> tokens;
        for (std::uint64_t left = random.below(40); left > 0; --left)
          tokens.push_back(3 + static_cast<std::int32_t>(random.below(256)));
        tokens.push_back(kEos);
        all_.insert(all_.end(), tokens.begin(), tokens.end());
        writer.add(tokens, static_cast<std::int64_t>(tokens.size())).value();
      }
      (void)writer.finish().value();
      data->shards.push_back(TokenShard::open(*store_, path).value());
    }
    data->packing = pack(data->shards, tokenizer, kRowLength, PackingPolicy::packed).value();
    data_ = data;
  }

  static std::string sentence() {
    std::string text;
    for (int i = 0; i < 200; ++i)
      text += "the quick brown fox jumps over the lazy dog " + std::to_string(i) + " times and rests. ";
    return text;
  }

  RowReaderOptions options(std::int64_t batch_rows) {
    RowReaderOptions options;
    options.batch_rows = batch_rows;
    options.seed = 17;
    return options;
  }

  std::unique_ptr<Store> store_ = make_memory_store();
  std::vector<std::int32_t> all_;
  std::shared_ptr<const PackedTokens> data_;
};

// Masked rows hold the same tokens, resume exactly, and do not depend on the assignment of rows to readers.
TEST_F(Rows, MaskedRowsAreThePiecesWithSomeToBeTold) {
  RowReaderOptions plain = options(6), masked = options(6);
  masked.masking = Masking{.share = 0.4, .seed = 5, .end = 300};
  RowReader pieces = RowReader::open(data_, plain).value(), reader = RowReader::open(data_, masked).value();
  EXPECT_EQ(reader.allocated(), RowReader::planned(data_->packing, masked));
  RowCursor middle;
  std::vector<std::int32_t> after;
  for (int step = 0; step < 20; ++step) {
    const Batch &want = *pieces.next().value(), &batch = *reader.next().value();
    ASSERT_EQ(batch.types.size(), batch.tokens.size());
    std::int64_t labels = 0;
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      ASSERT_EQ(batch.segments[i], want.segments[i]);
      ASSERT_EQ(batch.positions[i], want.positions[i]);
      ASSERT_EQ(batch.types[i], 0);
      labels += batch.labels[i] == -1 ? 0 : 1;
      if (batch.segments[i] == 0) {
        ASSERT_EQ(batch.tokens[i], 0);
        ASSERT_EQ(batch.labels[i], -1);
      } else {
        ASSERT_EQ(batch.labels[i] == -1 ? batch.tokens[i] : batch.labels[i], want.labels[i]);
      }
    }
    EXPECT_EQ(batch.label_count, labels);
    EXPECT_GT(labels, 0);
    EXPECT_EQ(batch.bytes, 0);
    if (step == 11) middle = reader.cursor();
    if (step > 11) after.insert(after.end(), batch.tokens.begin(), batch.tokens.end());
  }
  RowReader resumed = RowReader::open(data_, masked, middle).value();
  RowReaderOptions half = masked;  // the second of two readers with three rows each
  half.batch_rows = 3;
  half.step_rows = 6;
  half.first_row = 3;
  RowReader second = RowReader::open(data_, half, middle).value();
  for (std::size_t at = 0; at < after.size();) {
    const Batch &batch = *resumed.next().value(), &part = *second.next().value();
    ASSERT_TRUE(std::equal(batch.tokens.begin(), batch.tokens.end(), after.begin() + static_cast<std::ptrdiff_t>(at)));
    ASSERT_TRUE(std::equal(part.labels.begin(), part.labels.end(), batch.labels.begin() + 3 * kRowLength));
    at += batch.tokens.size();
  }
}

TEST_F(Rows, OnePassPredictsEveryTokenOnceFromItsOwnPieceOnly) {
  RowReaderOptions once = options(7);
  once.pass = RowPass::once;
  RowReader reader = RowReader::open(data_, once).value();
  std::vector<std::int32_t> predicted;
  std::int64_t labels = 0, bytes = 0, rows = 0;
  while (const Batch* batch = reader.next().value()) {
    std::int64_t counted = 0;
    for (std::size_t i = 0; i < batch->tokens.size(); ++i) {
      const std::int32_t segment = batch->segments[i], label = batch->labels[i], position = batch->positions[i];
      ASSERT_EQ(segment == 0, label == -1);
      if (segment == 0) {
        ASSERT_EQ(batch->tokens[i], 0);
        ASSERT_EQ(position, 0);
        continue;
      }
      ++counted;
      predicted.push_back(label);
      const bool first = i % kRowLength == 0 || batch->segments[i - 1] != segment;
      ASSERT_EQ(position == 0, first);
      ASSERT_EQ(batch->tokens[i], first ? 1 : batch->labels[i - 1]);
      ASSERT_EQ(position, first ? 0 : batch->positions[i - 1] + 1);
      // eos is never context within a piece: it ends one.
      ASSERT_NE(batch->tokens[i], kEos);
    }
    ASSERT_EQ(counted, batch->label_count);
    labels += counted;
    bytes += batch->bytes;
    rows += batch->rows;
  }
  EXPECT_EQ(labels, static_cast<std::int64_t>(all_.size()));
  EXPECT_EQ(bytes, data_->packing.bytes);
  EXPECT_EQ(rows, data_->packing.rows());
  std::vector<std::int32_t> expected = all_;
  std::sort(expected.begin(), expected.end());
  std::sort(predicted.begin(), predicted.end());
  EXPECT_EQ(predicted, expected);
  EXPECT_EQ(reader.next().value(), nullptr);  // and again at the end
}

// All four arrays of the next batches, concatenated.
std::vector<std::vector<std::int32_t>> take(RowReader& reader, int batches) {
  std::vector<std::vector<std::int32_t>> taken;
  for (int i = 0; i < batches; ++i) {
    const Batch* batch = reader.next().value();
    std::vector<std::int32_t> all;
    for (const auto part : {batch->tokens, batch->labels, batch->segments, batch->positions}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    taken.push_back(std::move(all));
  }
  return taken;
}

TEST_F(Rows, ResumesExactlyFromEveryCursor) {
  RowReader reader = RowReader::open(data_, options(5)).value();
  const std::int64_t batches = 2 * data_->packing.rows() / 5 + 3;  // over two epochs' ends
  std::vector<RowCursor> cursors{reader.cursor()};
  std::vector<std::vector<std::int32_t>> all;
  for (std::int64_t i = 0; i < batches; ++i) {
    all.push_back(take(reader, 1)[0]);
    cursors.push_back(reader.cursor());
  }
  EXPECT_GE(cursors.back().epoch, 2);
  for (std::size_t at = 0; at + 3 <= all.size(); ++at) {
    RowReader resumed = RowReader::open(data_, options(5), cursors[at]).value();
    EXPECT_EQ(resumed.cursor(), cursors[at]);
    ASSERT_EQ(take(resumed, 3), (std::vector(all.begin() + static_cast<std::ptrdiff_t>(at),
                                             all.begin() + static_cast<std::ptrdiff_t>(at) + 3)));
  }
}

TEST_F(Rows, TheBatchesOfSeveralThreadsAreThoseOfOne) {
  RowReader one = RowReader::open(data_, options(5)).value();
  const int batches = static_cast<int>(2 * data_->packing.rows() / 5) + 3;
  const auto want = take(one, batches);
  for (const std::int64_t readers : {2, 3, 5}) {
    RowReaderOptions several = options(5);
    several.readers = readers;
    several.queue_batches = readers + 1;
    several.before_batch = [](std::int64_t batch) {  // the later ones of a round are ready first
      std::this_thread::sleep_for(std::chrono::microseconds(batch % 3 == 0 ? 500 : 0));
    };
    RowReader reader = RowReader::open(data_, several).value();
    EXPECT_EQ(reader.allocated(), RowReader::planned(data_->packing, several));
    ASSERT_EQ(take(reader, batches), want) << readers;
    EXPECT_EQ(reader.cursor(), one.cursor());
  }
}

TEST_F(Rows, SeveralThreadsEndOnePassTogether) {
  RowReaderOptions once = options(7);
  once.pass = RowPass::once;
  once.readers = 4;
  once.queue_batches = 6;
  RowReader reader = RowReader::open(data_, once).value();
  std::int64_t rows = 0;
  while (const Batch* batch = reader.next().value()) rows += batch->rows;
  EXPECT_EQ(rows, data_->packing.rows());
  EXPECT_EQ(reader.next().value(), nullptr);
}

TEST_F(Rows, AnEpochGivesEachRowOnce) {
  RowReaderOptions endless = options(1);
  RowReader reader = RowReader::open(data_, endless).value();
  std::int64_t labels = 0;
  for (std::int64_t i = 0; i < data_->packing.rows(); ++i) labels += reader.next().value()->label_count;
  EXPECT_EQ(labels, data_->packing.tokens);
  EXPECT_EQ(reader.cursor(), (RowCursor{1, 0}));
}

TEST_F(Rows, RanksTogetherReadTheBatchOfOne) {
  RowReader whole = RowReader::open(data_, options(6)).value();
  RowReaderOptions part = options(2);
  part.step_rows = 6;
  std::vector<RowReader> ranks;
  for (part.first_row = 0; part.first_row < 6; part.first_row += 2)
    ranks.push_back(RowReader::open(data_, part).value());
  ASSERT_GE(data_->packing.rows(), 3);
  for (std::int64_t step = 0; step < data_->packing.rows() / 3; ++step) {
    const Batch* batch = whole.next().value();
    std::vector<std::int32_t> joined;
    for (RowReader& rank : ranks) {
      const Batch* own = rank.next().value();
      joined.insert(joined.end(), own->labels.begin(), own->labels.end());
      ASSERT_EQ(own->next, batch->next);
    }
    ASSERT_TRUE(std::equal(joined.begin(), joined.end(), batch->labels.begin(), batch->labels.end()));
  }
}

TEST_F(Rows, StaysWithinItsPlanAndItsStaging) {
  const RowReaderOptions chosen = options(5);
  RowReader reader = RowReader::open(data_, chosen).value();
  EXPECT_EQ(reader.allocated(), RowReader::planned(data_->packing, chosen));
  EXPECT_EQ(reader.allocated(), Bytes(3 * 4 * 5 * kRowLength * 4 + 4096));
  std::set<const std::int32_t*> slots;
  for (int i = 0; i < 50; ++i) slots.insert(reader.next().value()->tokens.data());
  EXPECT_EQ(slots.size(), 3u);
}

TEST_F(Rows, TheHeldBatchIsNotOverwritten) {
  RowReader reader = RowReader::open(data_, options(2)).value();
  for (int i = 0; i < 30; ++i) {
    const Batch* batch = reader.next().value();
    const std::vector<std::int32_t> copy(batch->labels.begin(), batch->labels.end());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // enough time for the thread to run ahead
    ASSERT_TRUE(std::equal(copy.begin(), copy.end(), batch->labels.begin()));
  }
}

TEST_F(Rows, WhatFailsOnTheThreadComesAfterTheBatchesBeforeIt) {
  RowReaderOptions failing = options(2);
  failing.before_batch = [](std::int64_t batch) {
    if (batch == 4) fail(error(ErrorKind::io, "the disk is gone"));
  };
  for (failing.readers = 1; failing.readers <= 3; ++failing.readers) {
    RowReader reader = RowReader::open(data_, failing).value();
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(reader.next().ok()) << i;
    EXPECT_EQ(reader.cursor(), (RowCursor{0, 8}));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(reader.next().error().message, "the disk is gone");
  }
}

TEST_F(Rows, ADamagedShardIsNamed) {
  std::vector<std::byte> bytes = read_all(*store_, "1.tokens").value();
  bytes[64 + 100] ^= std::byte{1};
  write_whole(*store_, "1.tokens", bytes).value();
  RowReaderOptions once = options(4);
  once.pass = RowPass::once;
  RowReader reader = RowReader::open(data_, once).value();
  Result<const Batch*> batch = reader.next();
  while (batch.ok() && *batch != nullptr) batch = reader.next();
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().where.file, "1.tokens");
}

TEST_F(Rows, ARemainderMayBeDropped) {
  RowReaderOptions dropping = options(7);
  dropping.drop_remainder = true;
  const std::int64_t rows = data_->packing.rows(), steps = rows / 7;
  ASSERT_NE(rows % 7, 0);
  RowReader reader = RowReader::open(data_, dropping).value(), crossing = RowReader::open(data_, options(7)).value();
  for (std::int64_t i = 0; i < steps; ++i) ASSERT_EQ(take(reader, 1), take(crossing, 1)) << "the same within an epoch";
  EXPECT_EQ(reader.cursor(), (RowCursor{1, 0}));
  EXPECT_EQ(crossing.cursor(), (RowCursor{0, 7 * steps}));
  RowReader resumed = RowReader::open(data_, dropping, {1, 0}).value();
  for (std::int64_t i = 0; i < steps; ++i) ASSERT_EQ(take(reader, 1), take(resumed, 1));
  EXPECT_EQ(reader.cursor(), (RowCursor{2, 0}));
  dropping.batch_rows = rows + 1;
  EXPECT_EQ(RowReader::open(data_, dropping).error().kind, ErrorKind::invalid);
  dropping.batch_rows = rows;
  RowReader whole = RowReader::open(data_, dropping).value();
  EXPECT_EQ(whole.next().value()->next, (RowCursor{1, 0}));
  dropping.batch_rows = 1;  // the last step fits
  dropping.batch_rows = 7;
  EXPECT_EQ(RowReader::open(data_, dropping, {3, rows - 6}).value().cursor(), (RowCursor{4, 0})) << "no step crosses";
  EXPECT_EQ(RowReader::open(data_, dropping, {3, rows - 7}).value().cursor(), (RowCursor{3, rows - 7}));
  dropping.batch_rows = 1;
  RowReader single = RowReader::open(data_, dropping, {0, rows - 2}).value();
  EXPECT_EQ(single.next().value()->next, (RowCursor{0, rows - 1}));
  EXPECT_EQ(single.next().value()->next, (RowCursor{1, 0}));
}

TEST_F(Rows, AStrangeCursorIsRefused) {
  EXPECT_EQ(RowReader::open(data_, options(2), {0, data_->packing.rows()}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(RowReader::open(data_, options(2), {-1, 0}).error().kind, ErrorKind::invalid);
}

TEST_F(Rows, MayBeDroppedAtAnyTime) {
  for (int taken = 0; taken < 6; ++taken) {
    RowReader reader = RowReader::open(data_, options(2)).value();
    for (int i = 0; i < taken; ++i) (void)reader.next().value();
  }
}

}  // namespace
}  // namespace systole
