#include "execute/data/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "execute/data/testing/made_up_text.h"

namespace systole {
namespace {

std::vector<std::uint32_t> random_lengths(std::size_t count, std::uint32_t longest, std::uint64_t seed) {
  PhiloxStream random(seed);
  std::vector<std::uint32_t> lengths;
  for (std::size_t i = 0; i < count; ++i) lengths.push_back(1 + static_cast<std::uint32_t>(random.below(longest)));
  return lengths;
}

// The slow reference: looks at every row for every piece.
std::vector<std::uint32_t> best_fit_by_search(const std::vector<std::uint32_t>& lengths, std::int64_t sequence_length) {
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return lengths[a] > lengths[b]; });
  std::vector<std::int64_t> room;
  std::vector<std::size_t> touched;  // time of a row's last insertion: among equals, the latest is taken
  std::vector<std::uint32_t> rows(lengths.size());
  std::size_t now = 0;
  for (const std::size_t piece : order) {
    std::size_t best = room.size();
    for (std::size_t row = 0; row < room.size(); ++row) {
      if (room[row] < lengths[piece]) continue;
      const bool better =
          best == room.size() || room[row] < room[best] || (room[row] == room[best] && touched[row] > touched[best]);
      if (better) best = row;
    }
    if (best == room.size()) {
      room.push_back(sequence_length);
      touched.push_back(0);
    }
    room[best] -= lengths[piece];
    touched[best] = ++now;
    rows[piece] = static_cast<std::uint32_t>(best);
  }
  return rows;
}

TEST(BestFit, EqualsTheSearch) {
  for (const std::int64_t sequence_length : {1, 7, 63, 64, 65, 200}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto lengths = random_lengths(120, static_cast<std::uint32_t>(sequence_length), seed);
      EXPECT_EQ(best_fit_rows(lengths, sequence_length), best_fit_by_search(lengths, sequence_length))
          << sequence_length << " " << seed;
    }
  }
}

TEST(BestFit, WindowsDoNotShareRows) {
  const auto lengths = random_lengths(1000, 100, 3);
  const auto rows = best_fit_rows(lengths, 100, 250);
  std::map<std::uint32_t, std::size_t> window_of;
  std::map<std::uint32_t, std::uint32_t> used;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(window_of.try_emplace(rows[i], i / 250).first->second, i / 250);
    used[rows[i]] += lengths[i];
  }
  for (const auto& [row, tokens] : used) EXPECT_LE(tokens, 100u);
  EXPECT_EQ(used.rbegin()->first + 1, used.size());  // no row is empty
}

TEST(BestFit, WastesLittle) {
  const auto lengths = random_lengths(50'000, 200, 4);
  const auto rows = best_fit_rows(lengths, 256);
  const auto count = *std::max_element(rows.begin(), rows.end()) + 1;
  const auto tokens = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
  EXPECT_LT(count * 256.0, 1.02 * static_cast<double>(tokens));
}

class Packed : public testing::Test {
 protected:
  Packed() {
    const auto texts = made_up_documents(500);
    tokenizer_.emplace(Tokenizer::train({.vocabulary = 350}, texts).value());
    Encoder encoder(*tokenizer_);
    const ShardTokens about{tokenizer_->hash(), tokenizer_->vocabulary(), tokenizer_->eos()};
    for (const char* path : {"0.tokens", "1.tokens"}) {
      TokenShardWriter writer = TokenShardWriter::create(*store_, path, about).value();
      for (std::size_t i = path[0] == '0' ? 0 : 300; i < (path[0] == '0' ? 300u : 500u); ++i) {
        std::vector<std::int32_t> tokens;
        encoder.encode(texts[i], tokens);
        tokens.push_back(tokenizer_->eos());
        all_.insert(all_.end(), tokens.begin(), tokens.end());
        ends_.push_back(all_.size());
        writer.add(tokens, static_cast<std::int64_t>(texts[i].size()) + 1).value();
        bytes_ += static_cast<std::int64_t>(texts[i].size()) + 1;
      }
      (void)writer.finish().value();
      shards_.push_back(TokenShard::open(*store_, path).value());
    }
  }

  std::unique_ptr<Store> store_ = make_memory_store();
  std::optional<Tokenizer> tokenizer_;
  std::vector<TokenShard> shards_;
  std::vector<std::int32_t> all_;
  std::vector<std::size_t> ends_;
  std::int64_t bytes_ = 0;
};

TEST_F(Packed, EveryTokenStandsInExactlyOnePieceAndNoPieceCrossesADocument) {
  for (const PackingPolicy policy : {PackingPolicy::packed, PackingPolicy::padded}) {
    for (const std::int64_t sequence_length : {1, 5, 16, 64, 1000}) {
      const Packing packing = pack(shards_, *tokenizer_, sequence_length, policy).value();
      EXPECT_EQ(packing.tokens, static_cast<std::int64_t>(all_.size()));
      EXPECT_EQ(packing.bytes, bytes_);
      std::vector<int> covered(all_.size());
      std::int64_t bytes = 0;
      for (std::int64_t row = 0; row < packing.rows(); ++row) {
        std::int64_t used = 0;
        EXPECT_TRUE(policy == PackingPolicy::packed || packing.row(row).size() == 1);
        for (const Piece& piece : packing.row(row)) {
          used += piece.length;
          bytes += piece.bytes;
          for (std::size_t i = 0; i < piece.length; ++i) ++covered[piece.token + i];
          const auto end = std::upper_bound(ends_.begin(), ends_.end(), piece.token);
          ASSERT_LE(piece.token + piece.length, *end);
          // A piece ends with its document or is as long as a row.
          ASSERT_TRUE(piece.token + piece.length == *end || piece.length == sequence_length);
        }
        ASSERT_LE(used, sequence_length);
        ASSERT_GT(used, 0);
      }
      EXPECT_EQ(bytes, bytes_);
      EXPECT_EQ(std::count(covered.begin(), covered.end(), 1), static_cast<std::ptrdiff_t>(covered.size()));
      EXPECT_EQ(packing.padding(), packing.rows() * sequence_length - packing.tokens);
    }
  }
}

TEST_F(Packed, BytesOfAPieceAreThoseItsTokensSpell) {
  const Packing packing = pack(shards_, *tokenizer_, 8, PackingPolicy::packed).value();
  ASSERT_FALSE(packing.pieces.empty());
  for (const Piece& piece : packing.pieces) {
    std::size_t spelled = 0;
    for (std::size_t i = 0; i < piece.length; ++i) spelled += tokenizer_->bytes_of(all_[piece.token + i]).size();
    const bool last = all_[piece.token + piece.length - 1] == tokenizer_->eos();
    ASSERT_EQ(piece.bytes, spelled + (last ? 1 : 0));  // the newline that eos stands for
  }
}

TEST_F(Packed, ReadsBackAndIsNamedByItsInputs) {
  const Packing packing = pack(shards_, *tokenizer_, 64, PackingPolicy::packed).value();
  EXPECT_EQ(parse_packing(serialise(packing), "t.rows").value(), packing);
  EXPECT_EQ(packing, pack(shards_, *tokenizer_, 64, PackingPolicy::packed).value());
  EXPECT_NE(packing.inputs, pack(shards_, *tokenizer_, 65, PackingPolicy::packed)->inputs);
  EXPECT_NE(packing.inputs, pack(shards_, *tokenizer_, 64, PackingPolicy::padded)->inputs);
  EXPECT_NE(packing.inputs, pack(std::span(shards_).first(1), *tokenizer_, 64, PackingPolicy::packed)->inputs);
}

TEST_F(Packed, EveryFlippedBitAndCutOfTheTableIsFound) {
  const std::vector<std::byte> whole = serialise(pack(shards_, *tokenizer_, 200, PackingPolicy::packed).value());
  for (std::size_t at = 0; at < whole.size(); at += at < 128 ? 1 : 37) {
    std::vector<std::byte> damaged = whole;
    damaged[at] ^= static_cast<std::byte>(1 << at % 8);
    const auto flipped = parse_packing(damaged, "t.rows");
    ASSERT_FALSE(flipped.ok()) << at;
    ASSERT_EQ(flipped.error().where.file, "t.rows");
    ASSERT_FALSE(parse_packing(std::span(whole).first(at), "t.rows").ok()) << at;
  }
  std::vector<std::byte> newer = whole;
  newer[8] = std::byte{9};
  EXPECT_EQ(parse_packing(newer, "t.rows").error().kind, ErrorKind::unsupported);
}

// A row of a padded table is one piece: its index takes no memory, and a table of two in a row is damaged.
TEST_F(Packed, APaddedTableHoldsAPieceEach) {
  const Packing padded = pack(shards_, *tokenizer_, 64, PackingPolicy::padded).value();
  EXPECT_EQ(parse_packing(serialise(padded), "t.rows").value(), padded);
  EXPECT_LE(parse_packing(serialise(padded), "t.rows")->resident(), Bytes(16 * padded.rows() + 8));
  EXPECT_LE(padded.resident(), Bytes(16 * padded.rows() + 8));
  // A packed table that calls itself padded, its checksums right.
  std::vector<std::byte> lying = serialise(pack(shards_, *tokenizer_, 64, PackingPolicy::packed).value());
  lying[12] = std::byte{1};
  const std::uint64_t header = hash64(std::span(lying).first(120));
  std::memcpy(lying.data() + 120, &header, sizeof header);
  const auto read = parse_packing(lying, "t.rows");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().kind, ErrorKind::corrupt);
  EXPECT_NE(read.error().message.find("do not hold a piece each"), std::string::npos) << read.error().message;
}

}  // namespace
}  // namespace systole
