#include "operate/run/rank_messages.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(RankMessages, an_engine_reads_back) {
  RankedEngine engine;
  engine.options = {.slots = 3,
                    .cache = 96,
                    .buckets = {16, 96},
                    .batches = {1, 3},
                    .pages = 7,
                    .parameter = DType::bf16,
                    .cache_type = DType::bf16,
                    .hidden = true,
                    .score = true,
                    .generates = false,
                    .texts = {96},
                    .drafts = 5,
                    .parts = 4};
  engine.adapters = {{"a b", 4, "00ff"}, {"c", 64, ""}};
  engine.step = 12;
  engine.one_machine = false;
  engine.link = Link{"host", Seconds(1.25e-5), BytesPerSecond(3e9)};
  const RankedEngine read = ranked_engine_from(to_text(engine)).value();
  EXPECT_EQ(to_text(read), to_text(engine));
  EXPECT_EQ(read.options.cache_type, DType::bf16);
  EXPECT_EQ(read.options.batches, engine.options.batches);
  ASSERT_EQ(read.adapters.size(), 2U);
  EXPECT_EQ(read.adapters[0].name, "a b");
  EXPECT_EQ(read.adapters[0].hash, "00ff");
  EXPECT_EQ(read.adapters[1].rank, 64);
  EXPECT_EQ(read.step, 12);
  EXPECT_EQ(read.link->bandwidth, BytesPerSecond(3e9));
  EXPECT_FALSE(ranked_engine_from(to_text(RankedEngine())).value().link);
}

TEST(RankMessages, what_cannot_be_read_is_refused) {
  for (const char* text : {"", "{}", R"({"slots": "many"})", "[1]"}) {
    const auto refused = ranked_engine_from(text);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_NE(to_string(refused.error()).find("error"), std::string::npos);
  }
}

TEST(RankMessages, an_error_comes_with_its_rank) {
  const Error said = error(ErrorKind::not_found, "no model '{}'", "a\"b").hinted("name another");
  const Error read = error_from_text(to_text(said), "2");
  EXPECT_EQ(read.kind, ErrorKind::not_found);
  EXPECT_EQ(read.message, "rank 2: no model 'a\"b'");
  EXPECT_EQ(read.hint, "name another");
}

}  // namespace
}  // namespace systole
