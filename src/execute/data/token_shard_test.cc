#include "execute/data/token_shard.h"

#include <gtest/gtest.h>

#include "ground/base/philox.h"

namespace systole {
namespace {

struct MadeUp {
  ShardTokens about;
  std::vector<std::vector<std::int32_t>> documents;
  std::vector<std::int64_t> bytes;
};

MadeUp made_up(std::int32_t vocabulary, std::size_t documents) {
  PhiloxStream random(5);
  MadeUp made{{{12, 34}, vocabulary, 2}, {}, {}};
  for (std::size_t i = 0; i < documents; ++i) {
    std::vector<std::int32_t> tokens;
    for (std::uint64_t left = random.below(200); left > 0; --left) {
      tokens.push_back(3 + static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary) - 3)));
    }
    tokens.push_back(made.about.eos);
    made.bytes.push_back(static_cast<std::int64_t>(random.below(1000)));
    made.documents.push_back(std::move(tokens));
  }
  return made;
}

ShardInfo write(Store& store, const MadeUp& made, const std::string& path = "a.tokens") {
  TokenShardWriter writer = TokenShardWriter::create(store, path, made.about).value();
  for (std::size_t i = 0; i < made.documents.size(); ++i) writer.add(made.documents[i], made.bytes[i]).value();
  return writer.finish().value();
}

class TokenShardOf : public testing::TestWithParam<std::int32_t> {};

TEST_P(TokenShardOf, GivesBackWhatWasWritten) {
  const auto store = make_memory_store();
  const MadeUp made = made_up(GetParam(), 3000);
  const ShardInfo info = write(*store, made);
  EXPECT_FALSE(store->exists("a.tokens.partial").value());
  const TokenShard shard = TokenShard::open(*store, "a.tokens").value();
  EXPECT_EQ(shard.info(), info);
  EXPECT_EQ(shard.about(), made.about);
  shard.verify().value();
  ASSERT_EQ(info.documents, 3000);
  std::vector<std::byte> scratch(kTokenBlockBytes);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < made.documents.size(); ++i) {
    const auto document = static_cast<std::int64_t>(i);
    std::vector<std::int32_t> tokens(made.documents[i].size());
    ASSERT_EQ(shard.document_end(document) - shard.document_begin(document), static_cast<std::int64_t>(tokens.size()));
    shard.read(shard.document_begin(document), tokens, scratch).value();
    ASSERT_EQ(tokens, made.documents[i]) << i;
    ASSERT_EQ(shard.document_bytes(document), made.bytes[i]);
    bytes += made.bytes[i];
  }
  EXPECT_EQ(info.bytes, bytes);
  std::vector<std::int32_t> all(static_cast<std::size_t>(info.tokens));
  shard.read(0, all, scratch).value();
  EXPECT_EQ(all.back(), made.about.eos);
}

INSTANTIATE_TEST_SUITE_P(Vocabulary, TokenShardOf, testing::Values(300, 65536, 65537, 200'000));

TEST(TokenShard, IdFollowsContent) {
  const auto store = make_memory_store();
  MadeUp made = made_up(300, 50);
  const Hash128 before = write(*store, made).id;
  EXPECT_EQ(write(*store, made, "b.tokens").id, before);
  made.documents[20][0] ^= 1;
  EXPECT_NE(write(*store, made).id, before);
}

TEST(TokenShard, EmptyIsAShardToo) {
  const auto store = make_memory_store();
  write(*store, made_up(300, 0));
  const TokenShard shard = TokenShard::open(*store, "a.tokens").value();
  EXPECT_EQ(shard.info().documents, 0);
  shard.verify().value();
}

// Opens and verifies, as a reader of every byte.
Status read_all_of(Store& store, const std::string& path) { return TRY(TokenShard::open(store, path)).verify(); }

TEST(TokenShard, EveryFlippedBitIsFoundAndNamed) {
  const auto store = make_memory_store();
  write(*store, made_up(300, 20));
  const std::vector<std::byte> whole = read_all(*store, "a.tokens").value();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::vector<std::byte> damaged = whole;
    damaged[at] ^= static_cast<std::byte>(1 << at % 8);
    write_whole(*store, "a.tokens", damaged).value();
    const Status status = read_all_of(*store, "a.tokens");
    ASSERT_FALSE(status.ok()) << "byte " << at;
    ASSERT_EQ(status.error().where.file, "a.tokens");
    // A higher version number is a newer format, not damage.
    ASSERT_TRUE(status.error().kind == ErrorKind::corrupt || (at >= 8 && at < 12)) << at << to_string(status.error());
  }
}

TEST(TokenShard, EveryCutIsFound) {
  const auto store = make_memory_store();
  write(*store, made_up(300, 20));
  const std::vector<std::byte> whole = read_all(*store, "a.tokens").value();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_whole(*store, "a.tokens", std::span(whole).first(size)).value();
    const Status status = read_all_of(*store, "a.tokens");
    ASSERT_FALSE(status.ok()) << size;
    ASSERT_EQ(status.error().kind, ErrorKind::corrupt) << to_string(status.error());
  }
}

TEST(TokenShard, ANewerVersionIsRefusedByItsNumber) {
  const auto store = make_memory_store();
  write(*store, made_up(300, 20));
  std::vector<std::byte> bytes = read_all(*store, "a.tokens").value();
  bytes[8] = std::byte{7};
  write_whole(*store, "a.tokens", bytes).value();
  const Error error = TokenShard::open(*store, "a.tokens").error();
  EXPECT_EQ(error.kind, ErrorKind::unsupported);
  EXPECT_NE(error.message.find("version 7"), std::string::npos);
  EXPECT_NE(error.message.find("up to version 1"), std::string::npos);
}

TEST(TokenShard, DamagedTokensAreFoundWhenTheyAreReadAndNotBefore) {
  const auto store = make_memory_store();
  const MadeUp made = made_up(300, 3000);
  write(*store, made);
  std::vector<std::byte> bytes = read_all(*store, "a.tokens").value();
  bytes[64 + 10'000] ^= std::byte{1};  // in the third block
  write_whole(*store, "a.tokens", bytes).value();
  const TokenShard shard = TokenShard::open(*store, "a.tokens", false).value();
  std::vector<std::byte> scratch(kTokenBlockBytes);
  std::vector<std::int32_t> tokens(100);
  EXPECT_TRUE(shard.read(0, tokens, scratch).ok());
  const Status status = shard.read(5000, tokens, scratch);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("bytes 8,256 to 12,351"), std::string::npos) << status.error().message;
}

TEST(TokenShard, AnUnfinishedShardIsNotThere) {
  const auto store = make_memory_store();
  const MadeUp made = made_up(300, 2);
  {
    TokenShardWriter writer = TokenShardWriter::create(*store, "a.tokens", made.about).value();
    writer.add(made.documents[0], 1).value();
  }
  EXPECT_EQ(TokenShard::open(*store, "a.tokens").error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace systole
