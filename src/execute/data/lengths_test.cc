// Lengths of built datasets, and rows packed from a histogram beside those of a packing table.

#include "execute/data/lengths.h"

#include <gtest/gtest.h>

#include "execute/data/build.h"
#include "execute/data/testing/made_up_text.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

constexpr std::int64_t kRow = 64;

TEST(DatasetLengths, of_documents_are_those_of_the_packing_table) {
  const std::unique_ptr<Store> texts = make_memory_store(), out = make_memory_store();
  std::string text;
  for (const std::string& document : made_up_documents(2000, 5)) text += document + "\n";
  write_whole(*texts, "a.txt", text).value();
  BuildOptions options;
  options.train = {texts.get(), {"a.txt"}, ""};
  options.held_out_fraction = 0.1;
  options.tokenizer.vocabulary = 350;
  options.sequence_length = kRow;
  options.shard_tokens = 5000;  // several shards
  const Dataset dataset = build_dataset(*out, options).value();
  ASSERT_GT(dataset.manifest.train.shards.size(), 2u);
  for (const bool held_out : {false, true}) {
    const DatasetLengths lengths = dataset_lengths(*out, dataset.manifest, held_out, kRow).value();
    const SplitTokens& split = held_out ? dataset.manifest.held_out : dataset.manifest.train;
    const Packing& table = (held_out ? dataset.held_out : dataset.train)->packing;
    EXPECT_EQ(lengths.documents.count(), split.documents);
    EXPECT_EQ(lengths.documents.tokens(), split.tokens);
    EXPECT_EQ(lengths.packed_rows, table.rows());
    EXPECT_EQ(lengths.documents.in_pieces(kRow).count(), static_cast<std::int64_t>(table.pieces.size()));
    EXPECT_FALSE(lengths.targets);
    // Drawn from the histogram alone, in another order.
    EXPECT_NEAR(static_cast<double>(packed_rows(lengths.documents, kRow)), static_cast<double>(table.rows()),
                0.01 * static_cast<double>(table.rows()) + 1);
  }
}

TEST(DatasetLengths, of_pairs_are_those_of_both_sides) {
  const std::unique_ptr<Store> texts = make_memory_store(), out = make_memory_store();
  write_whole(*texts, "a.jsonl",
              "{\"input\": \"abc\", \"target\": \"z\"}\n{\"input\": \"a\", \"target\": \"zzyyxx\"}\n")
      .value();
  BuildOptions options;
  options.train = {texts.get(), {"a.jsonl"}, ""};
  options.train_text.field = "input";
  options.train_text.target = "target";
  options.tokenizer.vocabulary = 265;
  options.sequence_length = 60;
  options.target_length = 20;
  options.policy = PackingPolicy::padded;
  const Dataset dataset = build_dataset(*out, options).value();
  const DatasetLengths lengths = dataset_lengths(*out, dataset.manifest, false, 40).value();
  ASSERT_TRUE(lengths.targets);
  EXPECT_EQ(lengths.documents.count(), 2);
  EXPECT_EQ(lengths.targets->count(), 2);
  EXPECT_EQ(lengths.documents.tokens() + lengths.targets->tokens(), dataset.manifest.train.tokens);
  EXPECT_GT(lengths.targets->longest(), lengths.targets->quantile(0));
  EXPECT_GT(lengths.documents.longest(), lengths.documents.quantile(0));
}

TEST(PackedRows, of_many_are_judged_by_some) {
  LengthHistogram few, many;
  PhiloxStream random(1);
  for (int i = 0; i < 200; ++i) {
    const auto length = 1 + static_cast<std::int64_t>(random.below(300));
    few.add(length, 100);
    many.add(length, 100'000);
  }
  const auto of_few = static_cast<double>(packed_rows(few, 256)), of_many = static_cast<double>(packed_rows(many, 256));
  EXPECT_NEAR(of_many / of_few, 1000, 10);
  EXPECT_GE(of_many * 256, static_cast<double>(many.tokens()));
}

}  // namespace
}  // namespace systole
