#include "execute/data/tokenizer.h"

#include <gtest/gtest.h>

#include "execute/data/testing/made_up_text.h"
#include "ground/base/testing/places.h"
#include "ground/store/store.h"

namespace systole {
namespace {

const Tokenizer& tokenizer_of(TokenizerKind kind) {
  static const std::vector<std::string> documents = made_up_documents(4000);
  static const Tokenizer bpe = Tokenizer::train({.kind = TokenizerKind::bpe, .vocabulary = 400}, documents).value();
  static const Tokenizer unigram =
      Tokenizer::train({.kind = TokenizerKind::unigram, .vocabulary = 400}, documents).value();
  return kind == TokenizerKind::bpe ? bpe : unigram;
}

class TokenizerOfKind : public testing::TestWithParam<TokenizerKind> {
 protected:
  const Tokenizer& tokenizer() { return tokenizer_of(GetParam()); }
  void expect_round_trip(Encoder& encoder, std::string_view text) {
    std::vector<std::int32_t> tokens;
    encoder.encode(text, tokens);
    for (const std::int32_t token : tokens) {
      ASSERT_FALSE(tokenizer().bytes_of(token).empty()) << "special token " << token;
    }
    ASSERT_EQ(tokenizer().decode(tokens).value(), text) << testing::PrintToString(std::string(text));
  }
};

TEST_P(TokenizerOfKind, HasTheVocabularyAskedFor) {
  EXPECT_EQ(tokenizer().vocabulary(), 400);
  EXPECT_EQ(tokenizer().bos(), 1);
  EXPECT_EQ(tokenizer().eos(), 2);
  EXPECT_EQ(tokenizer().bytes_of(tokenizer().eos()), "");
}

TEST_P(TokenizerOfKind, SpellsItsOwnKindOfTextInFewTokens) {
  Encoder encoder(tokenizer());
  std::size_t bytes = 0, tokens = 0;
  for (const std::string& document : made_up_documents(200, 2)) {
    std::vector<std::int32_t> encoded;
    encoder.encode(document, encoded);
    bytes += document.size();
    tokens += encoded.size();
  }
  EXPECT_GT(static_cast<double>(bytes) / static_cast<double>(tokens), 2.0);
}

TEST_P(TokenizerOfKind, DecodeOfEncodeIsTheTextForChosenStrings) {
  Encoder encoder(tokenizer());
  const std::string_view chosen[] = {"",
                                     " ",
                                     "  ",
                                     "a",
                                     " a",
                                     "a ",
                                     "   a   b   ",
                                     "\n",
                                     "a\n\n b\r\n",
                                     "\t\ttabs\t",
                                     "<s>",
                                     "</s>",
                                     "<unk>",
                                     "<pad>",
                                     "<0x41>",
                                     "<0x0A>",
                                     "text <s> in </s> text",
                                     "\xE2\x96\x81",
                                     "\xE2\x96\x81"
                                     "bado\xE2\x96\x81",
                                     " \xE2\x96\x81 ",
                                     "\xE2\x96\x85 reserved by the trainer",
                                     " \xE2\x81\x87 ",
                                     "\xEF\xBB\xBF byte order mark",
                                     "\xEF\xBF\xBD",
                                     "\xEF\xAC\x81 ligature",
                                     "A\xCC\x8A combining",
                                     "\xC2\xA0no-break",
                                     "\xE3\x80\x80wide",
                                     "\xE2\x80\x8Bzero width",
                                     "\xC0\xAF",
                                     "\xED\xA0\x80",
                                     "\xF0\x9F\x98\x80 emoji",
                                     "\xF0\x9F\x98",
                                     "caf\xE9",
                                     "\xFF\xFE\xFD",
                                     "\x7F\x01\x02"};
  for (const std::string_view text : chosen) expect_round_trip(encoder, text);
  expect_round_trip(encoder, std::string_view("nul \0 inside\0", 13));
  expect_round_trip(encoder, std::string(5000, 'x'));
  expect_round_trip(encoder, std::string(5000, ' '));
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  expect_round_trip(encoder, all);
}

TEST_P(TokenizerOfKind, DecodeOfEncodeIsTheTextForRandomStrings) {
  Encoder encoder(tokenizer());
  PhiloxStream random(11);
  const std::string parts[] = {"<s>",
                               "</s>",
                               "<0x41>",
                               "\xE2\x96\x81",
                               "\xE2\x96\x85",
                               "\n",
                               " ",
                               "  ",
                               "bado",
                               " kilu",
                               "é",
                               "\xF0\x9F\x98\x80",
                               "\xE2\x96",
                               "\xFF",
                               std::string(1, '\0'),
                               "<unk>",
                               "."};
  for (int trial = 0; trial < 4000; ++trial) {
    std::string text;
    for (std::uint64_t left = random.below(30); left > 0; --left) {
      if (random.below(2) == 0) {
        text += parts[random.below(std::size(parts))];
      } else {
        text += static_cast<char>(random.below(256));
      }
    }
    expect_round_trip(encoder, text);
    if (HasFatalFailure()) return;
  }
}

TEST_P(TokenizerOfKind, AnEncodersMemoryChangesNothing) {
  Encoder used(tokenizer());
  std::vector<std::int32_t> ignored;
  for (const std::string& document : made_up_documents(3000, 3)) used.encode(document, ignored);
  for (const std::string& document : made_up_documents(300, 4)) {
    std::vector<std::int32_t> from_used, from_fresh;
    used.encode(document, from_used);
    Encoder(tokenizer()).encode(document, from_fresh);
    ASSERT_EQ(from_used, from_fresh) << document;
  }
}

TEST_P(TokenizerOfKind, SurvivesItsBytes) {
  const Tokenizer loaded = Tokenizer::load(tokenizer().model()).value();
  EXPECT_EQ(loaded.hash(), tokenizer().hash());
  std::vector<std::int32_t> first, second;
  Encoder(tokenizer()).encode("bado kilu  menor", first);
  Encoder(loaded).encode("bado kilu  menor", second);
  EXPECT_EQ(first, second);
}

TEST_P(TokenizerOfKind, TrainingIsRepeatable) {
  const std::vector<std::string> documents = made_up_documents(1000);
  const TokenizerOptions options{.kind = GetParam(), .vocabulary = 350};
  EXPECT_EQ(Tokenizer::train(options, documents).value().hash(), Tokenizer::train(options, documents).value().hash());
}

TEST_P(TokenizerOfKind, RefusesAVocabularyThatCannotBe) {
  const std::vector<std::string> documents = made_up_documents(20);
  for (const int vocabulary : {1, 259, 265, 100'000}) {
    const Result<Tokenizer> refused = Tokenizer::train({.kind = GetParam(), .vocabulary = vocabulary}, documents);
    ASSERT_FALSE(refused.ok()) << vocabulary;
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
    EXPECT_NE(refused.error().message.find(fmt::to_string(vocabulary)), std::string::npos) << refused.error().message;
    EXPECT_NE(refused.error().hint.find("data.tokenizer.vocabulary: "), std::string::npos);
    for (const char* theirs : {"vocab_size", "--", "character_coverage", "required_chars"})
      EXPECT_EQ(to_string(refused.error()).find(theirs), std::string::npos) << to_string(refused.error());
  }
  EXPECT_EQ(Tokenizer::train({.kind = GetParam()}, {}).error().kind, ErrorKind::invalid);
}

// The smallest and largest sizes that an error names work, and nothing beyond them.
TEST_P(TokenizerOfKind, NamesTheVocabularyThatFits) {
  const std::vector<std::string> documents = made_up_documents(20);
  const auto refusal = [&](int vocabulary) {
    const Result<Tokenizer> trained = Tokenizer::train({.kind = GetParam(), .vocabulary = vocabulary}, documents);
    return trained.ok() ? std::string() : trained.error().hint;
  };
  const auto number_in = [](const std::string& hint) { return std::stoi(hint.substr(hint.find(": ") + 2)); };
  const int least = number_in(refusal(260)), most = number_in(refusal(100'000));
  EXPECT_LT(least, most);
  EXPECT_EQ(refusal(least), "");
  EXPECT_EQ(refusal(most), "");
  EXPECT_EQ(refusal(least - 1), fmt::format("data.tokenizer.vocabulary: {}, which is the least", least));
  EXPECT_EQ(refusal(most + 1),
            fmt::format("data.tokenizer.vocabulary: {}, which is the most, or give more text", most));
}

INSTANTIATE_TEST_SUITE_P(Kinds, TokenizerOfKind, testing::Values(TokenizerKind::bpe, TokenizerKind::unigram),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

TEST(Tokenizer, IsTrainedOnATextWithoutASpace) {
  std::vector<std::string> numbers;
  for (int n = 1; n <= 300; ++n) numbers.push_back(std::to_string(n));
  for (const TokenizerKind kind : {TokenizerKind::bpe, TokenizerKind::unigram}) {
    const Result<Tokenizer> tokenizer = Tokenizer::train({.kind = kind, .vocabulary = 270}, numbers);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    Encoder encoder(*tokenizer);
    std::vector<std::int32_t> tokens;
    encoder.encode("12 and  7", tokens);
    EXPECT_EQ(tokenizer->decode(tokens).value(), "12 and  7");
  }
}

TEST(Tokenizer, RefusesWhatIsNoModel) {
  EXPECT_EQ(Tokenizer::load("").error().kind, ErrorKind::corrupt);
  EXPECT_EQ(Tokenizer::load("no model at all").error().kind, ErrorKind::corrupt);
  const std::string model = tokenizer_of(TokenizerKind::bpe).model();
  EXPECT_FALSE(Tokenizer::load(model.substr(0, model.size() / 2)).ok());
}

// A model like T5's: normalisation rules, a space before the text, no byte tokens, no bos.
TEST(Tokenizer, ForeignModelsReadPromptsAndPairsAlone) {
  const auto store = open_posix_store(SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/t5").value();
  const std::string model = read_text(*store, "spiece.model").value();
  EXPECT_EQ(Tokenizer::load(model).error().kind, ErrorKind::unsupported);
  EXPECT_FALSE(Tokenizer::load(model, TokenizerUse::pairs).value().keeps_text());
  EXPECT_TRUE(Tokenizer::load(tokenizer_of(TokenizerKind::bpe).model(), TokenizerUse::pairs).value().keeps_text());
  const Tokenizer tokenizer = Tokenizer::load_foreign(model).value();
  EXPECT_EQ(tokenizer.eos(), 1);
  EXPECT_TRUE(tokenizer.before().empty() && tokenizer.after().empty());
  EXPECT_TRUE(tokenizer.begins_with_space());
  EXPECT_EQ(tokenizer.bytes_of(0), "");
  EXPECT_EQ(tokenizer.bytes_of(2), "");
  std::vector<std::int32_t> tokens;
  Encoder(tokenizer).encode("  All  \xEF\xAC\x81ve", tokens);
  EXPECT_EQ(tokenizer.decode(tokens).value(), "All five");
  EXPECT_EQ(Tokenizer::load_foreign("no model at all").error().kind, ErrorKind::corrupt);
  EXPECT_FALSE(tokenizer_of(TokenizerKind::unigram).begins_with_space());
}

TEST(Tokenizer, DecodeRefusesStrangeTokens) {
  const Tokenizer& tokenizer = tokenizer_of(TokenizerKind::bpe);
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{5, 400}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{-1}).error().kind, ErrorKind::invalid);
}

}  // namespace
}  // namespace systole
