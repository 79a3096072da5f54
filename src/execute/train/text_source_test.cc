// Cursors of text rows: with buckets they count steps, of an epoch that must stay the same.

#include <gtest/gtest.h>

#include "execute/data/build.h"
#include "execute/data/testing/made_up_text.h"
#include "execute/train/source.h"

namespace systole {
namespace {

class TextCursor : public testing::Test {
 protected:
  TextCursor() {
    std::string text;
    for (const std::string& document : made_up_documents(300, 5)) text += document + "\n";
    write_whole(*texts_, "a.txt", text).value();
    build_.train = {texts_.get(), {"a.txt"}, ""};
    build_.held_out_fraction = 0.1;
    build_.tokenizer.vocabulary = 350;
    build_.sequence_length = 64;
    build_.policy = PackingRule::bucketed({.edges = {16, 32}});
  }
  std::shared_ptr<const PackedTokens> rows() { return build_dataset(*out_, build_).value().train; }
  Result<std::unique_ptr<BatchSource>> open(std::int64_t batch, const Node& start) {
    RowReaderOptions options;
    options.batch_rows = batch;
    return open_text_source(rows(), options, start);
  }

  std::unique_ptr<Store> texts_ = make_memory_store(), out_ = make_memory_store();
  BuildOptions build_;
};

TEST_F(TextCursor, BucketsCountStepsOfTheSameEpoch) {
  const std::unique_ptr<BatchSource> source = open(4, Node()).value();
  for (int i = 0; i < 3; ++i) {
    const StepBatch& batch = *source->next().value();
    ASSERT_FALSE(batch.inputs.empty());
    const auto bytes = static_cast<std::int64_t>(batch.inputs[0].bytes.size());
    EXPECT_EQ(bytes % batch.inputs[0].row_bytes, 0);
    const std::int64_t length = batch.inputs[0].row_bytes / 4;
    EXPECT_TRUE(length == 16 || length == 32 || length == 64) << length;
    EXPECT_EQ(bytes / batch.inputs[0].row_bytes, 4 * (64 / length));
  }
  const Node middle = source->cursor();
  EXPECT_EQ(middle.text_at("row"), "3");
  EXPECT_TRUE(open(4, middle).ok());
  const auto refused = [&](const Node& start, std::int64_t batch) {
    const auto opened = open(batch, start);
    return !opened.ok() && opened.error().kind == ErrorKind::invalid &&
           opened.error().message.find("in the middle of an epoch") != std::string::npos;
  };
  EXPECT_TRUE(refused(middle, 2)) << "other steps";
  EXPECT_TRUE(refused(Node::map({{"epoch", 0}, {"row", 3}}), 4)) << "a state that counts rows";
  EXPECT_TRUE(open(2, Node::map({{"epoch", 1}, {"row", 0}, {"steps", 7}})).ok()) << "an epoch begins";
  build_.policy = PackingRule::bucketed({.edges = {24}});
  EXPECT_TRUE(refused(middle, 4)) << "other buckets";
  build_.policy = PackingPolicy::padded;
  EXPECT_TRUE(refused(middle, 4)) << "no buckets";
}

// 20 rows of 20 tokens, 2 of 21 and 10 of 32: 2 + 2 steps of 4 rows of 64, whether the first bucket ends at 20 or 21.
std::shared_ptr<const PackedTokens> by_hand(std::int64_t edge) {
  auto data = std::make_shared<PackedTokens>();
  data->packing.policy = PackingPolicy::bucketed;
  data->packing.sequence_length = 64;
  data->packing.buckets = {{edge, 0}, {32, edge == 20 ? 20 : 22}};
  for (std::uint32_t row = 0; row < 32; ++row)
    data->packing.pieces.push_back({0, row < 20 ? 20U : row < 22 ? 21U : 32U, 1});
  return data;
}

TEST_F(TextCursor, AsManyStepsOfOtherRowsAreOthers) {
  RowReaderOptions options;
  options.batch_rows = 4;
  Node middle = open_text_source(by_hand(20), options, Node()).value()->cursor();
  middle.set("row", 1);
  EXPECT_EQ(middle.text_at("steps"), "4");
  EXPECT_TRUE(open_text_source(by_hand(20), options, middle).ok());
  const auto refusal = [&](std::int64_t edge) {
    const auto opened = open_text_source(by_hand(edge), options, middle);
    return opened.ok() ? "" : opened.error().message;
  };
  const std::string other =
      "the state is in the middle of an epoch of 4 steps, and now an epoch is of 4 steps of other rows";
  EXPECT_EQ(refusal(21), other) << "other buckets";
  Node older = Node::map();  // of a program that did not name the order yet
  for (const char* key : {"epoch", "row", "steps"}) older.set(key, *middle.find(key));
  EXPECT_TRUE(open_text_source(by_hand(20), options, older).ok());
  options.seed = 1;
  EXPECT_EQ(refusal(20), other) << "another order";
  options.seed = 0;
  options.batch_rows = 1;  // a rank of 4 counts the same steps
  options.step_rows = 4;
  EXPECT_EQ(refusal(20), "");
}

}  // namespace
}  // namespace systole
