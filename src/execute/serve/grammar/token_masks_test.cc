#include "execute/serve/grammar/token_masks.h"

#include <gtest/gtest.h>

#include <random>

#include "execute/serve/grammar/testing/valid.h"
#include "execute/serve/sampling.h"

namespace systole::grammar {
namespace {

Node json(std::string_view text) { return parse_json(text, "test").value(); }

// Every byte, pieces of JSON that end several rules at once, words, two tokens with one spelling and one without.
std::vector<std::string> spellings() {
  std::vector<std::string> all{"",    "",         "{\"",  "\":",  "\": \"", "\", \"", "\"}",  "}}",    "]}",
                               "},{", "\"],",     "true", "null", "a",      "name",   "next", "value", "12",
                               "34",  "\xC3\xA9", "\xC3", "\n  ", "\n\n",   " ",      ", ",   "[[",    "]]",
                               "\\n", "\\u00",    "e5",   "-1",   "0.",     "[{\"",   "{}",   "[]"};
  for (int byte = 0; byte < 256; ++byte) all.emplace_back(1, static_cast<char>(byte));
  return all;
}

const std::vector<const char*>& schemas() {
  static const std::vector<const char*> all{
      R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 6}, "value": {"type": "integer",
          "minimum": -40, "maximum": 1234}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
          "required": ["name"], "additionalProperties": false})",
      R"({"type": "array", "items": {"anyOf": [{"type": "boolean"}, {"type": "number"}, {"$ref": "#"}]},
          "maxItems": 3})",
      R"({"anyOf": [{"type": "object", "properties": {"a": {"enum": ["x", "xy", 12]}}, "required": ["a"],
          "additionalProperties": {"type": "integer"}}, {"type": "object", "properties": {"a": {"type": "array"}},
          "required": ["a"]}, {"const": [[true, null]]}]})",
      R"({"type": "object", "properties": {"n": {"type": "string", "minLength": 2}, "t": {"type": ["null", "integer"]},
          "a": {"items": {"type": "string"}, "minItems": 2, "maxItems": 4}}, "required": ["n", "a"]})"};
  return all;
}

std::vector<std::uint64_t> one_by_one(const GrammarState& state, const TokenTrie& trie) {
  std::vector<std::uint64_t> mask((trie.vocabulary() + 63) / 64);
  for (std::size_t token = 0; token < trie.vocabulary(); ++token) {
    const std::string_view bytes = trie.bytes_of(static_cast<std::int32_t>(token));
    if (!bytes.empty() && GrammarState(state).advance(bytes)) mask[token / 64] |= std::uint64_t{1} << (token % 64);
  }
  return mask;
}

TEST(TokenMasks, are_those_of_each_token_tried_by_itself) {
  const auto trie = std::make_shared<const TokenTrie>(spellings());
  std::vector<Grammar> grammars{Grammar::of_object(), Grammar::of_regex("(ab|a\xC3\xA9|\"[^x]{2}\")*c?").value(),
                                Grammar::of_schema(Node(true)).value()};
  for (const char* schema : schemas()) grammars.push_back(Grammar::of_schema(json(schema)).value());
  std::mt19937 random(5);
  for (const Grammar& grammar : grammars) {
    TokenMasks masks(grammar, trie);
    for (int text = 0; text < 12; ++text) {
      GrammarState state(grammar);
      std::string read;
      for (int step = 0; step < 60 && !state.must_end(); ++step) {
        std::vector<std::uint64_t> mask((trie->vocabulary() + 63) / 64);
        ASSERT_TRUE(masks.fill(state, mask));
        ASSERT_EQ(mask, one_by_one(state, *trie)) << read;
        std::vector<std::int32_t> allowed;
        for (std::size_t token = 0; token < trie->vocabulary(); ++token) {
          if ((mask[token / 64] >> (token % 64) & 1) != 0) allowed.push_back(static_cast<std::int32_t>(token));
        }
        ASSERT_FALSE(allowed.empty() && !state.may_end()) << read;
        if (allowed.empty()) break;
        const std::string_view bytes = trie->bytes_of(allowed[random() % allowed.size()]);
        ASSERT_TRUE(state.advance(bytes));
        read += bytes;
      }
    }
  }
}

// A token at a time from random logits; the end is as likely as any token, once it may come.
std::string sampled(const Grammar& grammar, TokenMasks& masks, std::uint64_t seed) {
  const std::int32_t end = 0;
  std::mt19937_64 random(seed);
  std::normal_distribution<float> logit(0, 2);
  Sampler sampler({.seed = seed});
  GrammarState state(grammar);
  std::string text;
  std::vector<float> logits(masks.trie().vocabulary());
  std::vector<std::uint64_t> mask((logits.size() + 63) / 64);
  for (std::uint64_t step = 0; step < 4000 && !state.must_end(); ++step) {
    for (std::size_t token = 0; token < logits.size(); ++token) {
      const std::string_view bytes = masks.trie().bytes_of(static_cast<std::int32_t>(token));
      const bool closes = bytes.find_first_of("\"]}") != bytes.npos;  // otherwise texts would be long
      logits[token] = logit(random) + (closes ? 4.0F : 0.0F);
    }
    EXPECT_TRUE(masks.fill(state, mask));
    if (state.may_end()) mask[0] |= 1;
    const std::int32_t token = sampler.sample(logits, 0, step, {}, mask).value();
    if (token == end) break;
    EXPECT_TRUE(state.advance(masks.trie().bytes_of(token)));
    text += masks.trie().bytes_of(token);
  }
  EXPECT_TRUE(state.may_end()) << text;
  return text;
}

TEST(TokenMasks, what_is_sampled_parses_and_is_valid) {
  const auto trie = std::make_shared<const TokenTrie>(spellings());
  std::uint64_t seed = 0;
  int read = 0;
  for (const char* text : schemas()) {
    const Node schema = json(text);
    const Grammar grammar = Grammar::of_schema(schema).value();
    TokenMasks masks(grammar, trie);
    for (int i = 0; i < 40; ++i) {
      const std::string answer = sampled(grammar, masks, ++seed);
      const Result<Node> value = parse_json(answer, "answer");
      // Names that are free may come twice, which this reader refuses.
      if (!value.ok() && value.error().message.find("twice") != std::string::npos) continue;
      ASSERT_TRUE(value.ok()) << answer << value.error().message;
      EXPECT_TRUE(is_valid(schema, schema, *value)) << text << '\n' << answer;
      ++read;
    }
  }
  EXPECT_GT(read, 150);
}

TEST(TokenMasks, a_step_costs_far_less_than_all_tokens) {
  std::vector<std::string> many = spellings();
  std::mt19937 random(7);
  for (int i = 0; i < 50'000; ++i) {
    std::string word;
    for (int length = 1 + static_cast<int>(random() % 8); length > 0; --length)
      word += static_cast<char>(random() % 20 == 0 ? '"' : 'a' + static_cast<char>(random() % 26));
    many.push_back(std::move(word));
  }
  const auto trie = std::make_shared<const TokenTrie>(std::move(many));
  const Grammar grammar = Grammar::of_object();
  TokenMasks masks(grammar, trie);
  std::vector<std::uint64_t> mask((trie->vocabulary() + 63) / 64);
  GrammarState state(grammar);
  ASSERT_TRUE(state.advance("{\"a\": \""));
  ASSERT_TRUE(masks.fill(state, mask));
  const std::int64_t first = masks.work();
  ASSERT_TRUE(state.advance("word"));
  ASSERT_TRUE(masks.fill(state, mask));
  EXPECT_LT(masks.work() - first, first / 4) << "within a string only what closes it is tried again";
  EXPECT_EQ(mask, one_by_one(state, *trie));
}

}  // namespace
}  // namespace systole::grammar
