// Pairs of JSON records: tokens, rows, refusals.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "execute/data/build.h"
#include "execute/data/testing/made_up_text.h"
#include "ground/base/testing/places.h"

namespace systole {
namespace {

constexpr std::int64_t kInput = 40, kTarget = 24;

class Pairs : public testing::Test {
 protected:
  Pairs() {
    const std::vector<std::string> inputs = made_up_documents(400, 1), targets = made_up_documents(400, 2);
    std::string text;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      answers_[inputs[i]] = targets[i];
      text += fmt::format("{{\"input\": \"{}\", \"target\": \"{}\"}}\n", inputs[i], targets[i]);
    }
    write_whole(*texts_, "pairs.jsonl", text).value();
    options_.train = {texts_.get(), {"pairs.jsonl"}, ""};
    options_.train_text.field = "input";
    options_.train_text.target = "target";
    options_.held_out_fraction = 0.1;
    options_.tokenizer.vocabulary = 350;
    options_.sequence_length = kInput + kTarget;
    options_.target_length = kTarget;
    options_.policy = PackingPolicy::padded;
    reader_.batch_rows = 3;
    reader_.target_length = kTarget;
  }

  std::unique_ptr<Store> texts_ = make_memory_store(), out_ = make_memory_store();
  std::map<std::string, std::string> answers_;
  BuildOptions options_;
  RowReaderOptions reader_;
};

// The first `length` - 1 tokens of a text, and eos.
std::vector<std::int32_t> tokens_of(const Tokenizer& tokenizer, const std::string& text, std::int64_t length) {
  std::vector<std::int32_t> tokens;
  Encoder(tokenizer).encode(text, tokens);
  tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(length - 1)));
  tokens.push_back(tokenizer.eos());
  return tokens;
}

TEST_F(Pairs, each_has_a_row_with_its_input_and_its_target) {
  const Dataset dataset = build_dataset(*out_, options_).value();
  EXPECT_EQ(dataset.train->packing.rows() + dataset.held_out->packing.rows(), 400);
  EXPECT_GT(dataset.held_out->packing.rows(), 10);
  std::map<std::vector<std::int32_t>, std::vector<std::int32_t>> expected;
  for (const auto& [input, target] : answers_)
    expected[tokens_of(dataset.tokenizer, input, kInput)] = tokens_of(dataset.tokenizer, target, kTarget);
  std::int64_t rows = 0, cut = 0;
  for (const auto& split : {dataset.train, dataset.held_out}) {
    reader_.pass = RowPass::once;
    RowReader reader = RowReader::open(split, reader_).value();
    EXPECT_EQ(reader.allocated(), RowReader::planned(split->packing, reader_));
    while (const Batch* batch = reader.next().value()) {
      ASSERT_EQ(batch->tokens.size(), static_cast<std::size_t>(3 * kInput));
      ASSERT_EQ(batch->labels.size(), static_cast<std::size_t>(3 * kTarget));
      EXPECT_EQ(batch->bytes, 0);
      std::int64_t labels = 0;
      for (std::int64_t r = 0; r < 3; ++r, ++rows) {
        const auto row = [&](std::span<const std::int32_t> all, std::int64_t length) {
          return all.subspan(static_cast<std::size_t>(r * length), static_cast<std::size_t>(length));
        };
        const auto segments = row(batch->segments, kInput), target_segments = row(batch->target_segments, kTarget);
        const auto inputs = std::count(segments.begin(), segments.end(), 1);
        const auto targets = std::count(target_segments.begin(), target_segments.end(), 1);
        if (r >= batch->rows) {
          EXPECT_EQ(inputs + targets, 0);
          --rows;
          continue;
        }
        const auto tokens = row(batch->tokens, kInput).first(static_cast<std::size_t>(inputs));
        const auto found = expected.find(std::vector<std::int32_t>(tokens.begin(), tokens.end()));
        ASSERT_NE(found, expected.end());
        const auto wanted = row(batch->labels, kTarget), read = row(batch->target_tokens, kTarget);
        ASSERT_EQ(found->second, std::vector<std::int32_t>(wanted.begin(), wanted.begin() + targets));
        EXPECT_EQ(std::count(wanted.begin(), wanted.end(), -1), kTarget - targets);
        EXPECT_EQ(read[0], kTargetStart);
        EXPECT_TRUE(std::equal(wanted.begin(), wanted.begin() + targets - 1, read.begin() + 1));
        labels += targets;
        cut += targets == kTarget ? 1 : 0;
      }
      EXPECT_EQ(batch->label_count, labels);
    }
  }
  EXPECT_EQ(rows, 400);
  EXPECT_GT(cut, 0) << "no target was long enough to be cut";
  std::int64_t longer = 0;
  for (const auto& [input, target] : answers_) {
    std::vector<std::int32_t> of_input, of_target;
    Encoder(dataset.tokenizer).encode(input, of_input);
    Encoder(dataset.tokenizer).encode(target, of_target);
    longer += of_input.size() >= kInput || of_target.size() >= kTarget ? 1 : 0;
  }
  EXPECT_GT(longer, 0);
  EXPECT_EQ(dataset.manifest.cut, longer);
  EXPECT_EQ(parse_tokens_manifest(to_json(dataset.manifest), "tokens.json").value(), dataset.manifest);
}

// A T5's own model: unigram, without bos, byte tokens or the guarantee to keep a text.
TEST_F(Pairs, are_made_with_a_t5s_own_tokenizer) {
  const auto golden = open_posix_store(SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/t5").value();
  options_.tokenizer_model = read_text(*golden, "spiece.model").value();
  const Dataset dataset = build_dataset(*out_, options_).value();
  EXPECT_EQ(dataset.tokenizer.eos(), 1);
  EXPECT_EQ(dataset.train->bos, 0) << "pad divides a pair";
  EXPECT_FALSE(dataset.tokenizer.keeps_text());
  std::set<std::vector<std::int32_t>> expected;
  for (const auto& [input, target] : answers_) expected.insert(tokens_of(dataset.tokenizer, input, kInput));
  reader_.pass = RowPass::once;
  RowReader reader = RowReader::open(dataset.train, reader_).value();
  std::int64_t rows = 0;
  while (const Batch* batch = reader.next().value()) {
    for (std::int64_t r = 0; r < batch->rows; ++r, ++rows) {
      const auto row = batch->tokens.subspan(static_cast<std::size_t>(r * kInput), kInput);
      EXPECT_TRUE(expected.contains({row.begin(), std::find(row.begin(), row.end(), 1) + 1}));
    }
  }
  EXPECT_EQ(rows, dataset.train->packing.rows());
  EXPECT_TRUE(build_dataset(*out_, options_).value().built.empty()) << "it is there";
  EXPECT_TRUE(verify_dataset(*out_, dataset.manifest.key).ok());
  options_.target_length = 0;
  options_.train_text.target.clear();
  const Error refused = build_dataset(*out_, options_).error();
  EXPECT_NE(refused.message.find("cannot keep every byte of a text"), std::string::npos) << refused.message;
}

TEST_F(Pairs, shards_verify_and_the_key_knows_the_rows_lengths) {
  const Dataset dataset = build_dataset(*out_, options_).value();
  EXPECT_TRUE(verify_dataset(*out_, dataset.manifest.key).ok());
  BuildOptions other = options_;
  other.target_length = kTarget - 1;
  EXPECT_NE(dataset_inputs(other).value().key, dataset_inputs(options_).value().key);
  other = options_;
  other.train_text.target = "input";
  EXPECT_NE(dataset_inputs(other).value().key, dataset_inputs(options_).value().key);
}

TEST_F(Pairs, refusals_name_the_field_and_the_form) {
  options_.train_text.target = "answer";
  const Error absent = build_dataset(*out_, options_).error();
  EXPECT_EQ(absent.where.file, "pairs.jsonl");
  EXPECT_NE(absent.message.find("no field 'answer'"), std::string::npos) << absent.message;
  write_whole(*texts_, "text.txt", "just text\n").value();
  options_.train.paths = {"text.txt"};
  const Error text = build_dataset(*out_, options_).error();
  EXPECT_NE(text.message.find("JSON Lines"), std::string::npos) << text.message;
  EXPECT_NE(text.hint.find(".jsonl"), std::string::npos) << text.hint;
}

}  // namespace
}  // namespace systole
