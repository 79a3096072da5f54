#include "execute/serve/text_bits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "execute/data/testing/made_up_text.h"
#include "execute/serve/testing/tiny_engine.h"

namespace systole {
namespace {

class BitsOf : public testing::Test {
 protected:
  std::vector<std::int32_t> tokens_of(std::string_view text) const {
    std::vector<std::int32_t> tokens{tokenizer_.bos()};
    Encoder(tokenizer_).encode(text, tokens);
    return tokens;
  }

  const Tokenizer tokenizer_ = Tokenizer::train({.vocabulary = 400}, made_up_documents(500)).value();
  const std::unique_ptr<const Model> model_ = make_decoder(tiny_decoder(400, 32));
  const std::unique_ptr<Device> device_ = make_reference_device();
};

TEST_F(BitsOf, a_model_without_an_opinion_are_those_of_its_vocabulary) {
  const auto engine = Engine::create(*model_, *device_, {.score = true}).value();  // its parameters are zero
  const std::string text = "made up";
  const std::vector<std::int32_t> tokens = tokens_of(text);
  const TextBits bits = bits_of(*engine, tokenizer_, tokens).value();
  const auto predicted = static_cast<double>(tokens.size() - 1);
  EXPECT_NEAR(bits.bits, predicted * std::log2(400.0), 1e-6 * predicted);
  EXPECT_EQ(bits.tokens, static_cast<std::int64_t>(tokens.size()) - 1);
  EXPECT_EQ(bits.bytes, static_cast<std::int64_t>(text.size()));
  EXPECT_DOUBLE_EQ(bits.per_byte(), bits.bits / static_cast<double>(text.size()));
}

TEST_F(BitsOf, a_model_are_the_log_probabilities_after_each_beginning) {
  const auto engine = sharp_engine(*model_, *device_, {.score = true, .generates = false}),
             other = sharp_engine(*model_, *device_, {});
  const std::vector<std::int32_t> tokens = tokens_of("made up text");
  ASSERT_GT(tokens.size(), 3U);
  double expected = 0;
  for (std::size_t n = 1; n < tokens.size(); ++n) {
    other->prefill(0, std::span(tokens).first(n)).value();
    double total = 0;
    for (const float logit : other->logits(0)) total += std::exp(double{logit});
    expected -= std::log2(std::exp(double{other->logits(0)[static_cast<std::size_t>(tokens[n])]}) / total);
  }
  EXPECT_NEAR(bits_of(*engine, tokenizer_, tokens).value().bits, expected, 1e-4 * expected);
}

TEST_F(BitsOf, nothing_and_of_no_numbers_are_refused) {
  const auto engine = sharp_engine(*model_, *device_, {.score = true, .generates = false});
  for (const std::vector<std::int32_t>& tokens : {std::vector<std::int32_t>{}, tokens_of("")}) {
    const auto none = bits_of(*engine, tokenizer_, tokens);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().kind, ErrorKind::invalid);
  }
  spoil_weights(*model_, *engine);
  const auto spoiled = bits_of(*engine, tokenizer_, tokens_of("made up"));
  ASSERT_FALSE(spoiled.ok());
  EXPECT_NE(spoiled.error().message.find("not finite"), std::string::npos) << spoiled.error().message;
}

}  // namespace
}  // namespace systole
