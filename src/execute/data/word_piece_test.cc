#include "execute/data/word_piece.h"

#include <gtest/gtest.h>

#include "execute/data/tokenizer.h"
#include "execute/data/tokenizer_files.h"
#include "ground/base/document.h"

namespace systole {
namespace {

constexpr const char* kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\nthe\nlow\n##er\n,\n!\n##s\nh\xe4llo\nhallo\n\xe4\xb8\xad\n"
    "##\xc3\xa9\nThe\n##est\n##e\n";

std::string lines_with(const std::string& config = "{}") {
  std::string vocabulary = kVocabulary;
  vocabulary.replace(vocabulary.find('\xe4'), 1, "\xc3\xa4");
  return bundle_tokenizer({{"vocab.txt", vocabulary}, {"tokenizer_config.json", config}});
}

// As `tokenizers` 0.23.3 writes it.
Node whole(const char* normalizer = R"({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                                         "strip_accents": null, "lowercase": true})") {
  Node vocabulary = Node::map();
  std::int64_t token = 0;
  for (const char* name : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "the"})
    vocabulary.set(name, token++);
  return Node::map({{"version", "1.0"},
                    {"added_tokens", Node::sequence({Node::map({{"id", 0}, {"content", "[PAD]"}, {"special", true}}),
                                                     Node::map({{"id", 2}, {"content", "[CLS]"}, {"special", true}})})},
                    {"normalizer", parse_json(normalizer, "normalizer").value()},
                    {"pre_tokenizer", Node::map({{"type", "BertPreTokenizer"}})},
                    {"post_processor", Node::map({{"type", "TemplateProcessing"}})},
                    {"decoder", Node::map({{"type", "WordPiece"}, {"prefix", "##"}})},
                    {"model", Node::map({{"type", "WordPiece"},
                                         {"unk_token", "[UNK]"},
                                         {"continuing_subword_prefix", "##"},
                                         {"max_input_chars_per_word", 12},
                                         {"vocab", std::move(vocabulary)}})}});
}

std::vector<std::int32_t> encoded(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> tokens;
  Encoder(tokenizer).encode(text, tokens);
  return tokens;
}

// What BertNormalizer and BertPreTokenizer of `tokenizers` 0.23.3 give, the words joined by spaces.
TEST(BertWords, are_those_of_the_reference) {
  const BertCleaning usual;
  const auto words = [&](std::string_view text) { return bert_words(text, usual); };
  EXPECT_EQ(words(""), "");
  EXPECT_EQ(words("  The LOWER,the  lowest! "), "the lower , the lowest ! ");
  EXPECT_EQ(words("a+b$c\u00a7d\u2013e"), "a + b $ c \u00a7 d \u2013 e ");
  EXPECT_EQ(words("\u00c5 \u00e9 \u0130stanbul"), "a e istanbul ");
  EXPECT_EQ(words("\u03a3\u0391\u03a3"), "\u03c3\u03b1\u03c3 ") << "the last sigma is as any other";
  EXPECT_EQ(words("\u0928\u092e\u0938\u094d\u0924\u0947"), "\u0928\u092e\u0938\u0924 ");
  EXPECT_EQ(words("\uac01"), "\u1100\u1161\u11a8 ");
  EXPECT_EQ(words("\u4e2d\u6587ok"), "\u4e2d \u6587 ok ");
  EXPECT_EQ(words("a\u3000b\u2028c\td"), "a b c d ");
  EXPECT_EQ(words("a\u200bb\u00adc\ue000d\ufffde\x0b\u0085"
                  "f"),
            "abcdef ");
  EXPECT_EQ(words("a\u0378b \U0001f600"), "a\u0378b \U0001f600 ") << "what is unassigned is kept";
  EXPECT_EQ(bert_words("\u0130\u00c9 Ab", {.strip_accents = false}), "i\u0307\u00e9 ab ");
  EXPECT_EQ(bert_words("\u00c9 Ab", {.lower = false, .strip_accents = false}), "\u00c9 Ab ");
  EXPECT_EQ(bert_words("\u4e2d\u6587", {.cjk = false}), "\u4e2d\u6587 ");
  EXPECT_EQ(bert_words("a\x0b"
                       "b\u200b",
                       {.clean = false}),
            "a b\u200b ");
}

TEST(WordPiece, takes_the_longest_pieces_from_left_to_right) {
  const Tokenizer tokenizer = Tokenizer::load_foreign(lines_with()).value();
  EXPECT_EQ(tokenizer.family(), TokenizerFamily::word_piece);
  EXPECT_EQ(tokenizer.vocabulary(), 21);
  EXPECT_FALSE(tokenizer.keeps_text());
  EXPECT_EQ(encoded(tokenizer, "Unaffable, the lowers!"), (std::vector<std::int32_t>{5, 6, 7, 11, 8, 9, 10, 13, 12}));
  EXPECT_EQ(encoded(tokenizer, "lowest"), (std::vector<std::int32_t>{9, 19}));
  EXPECT_EQ(encoded(tokenizer, "lowx the"), (std::vector<std::int32_t>{1, 8})) << "the word is unknown as a whole";
  EXPECT_EQ(encoded(tokenizer, "H\u00e4llo \u4e2d\u4e2d"), (std::vector<std::int32_t>{15, 16, 16}));
  EXPECT_EQ(
      encoded(tokenizer, "un" + std::string(97, 'e') + " un" + std::string(98, 'e') + " un" + std::string(99, 'e'))
          .size(),
      98u + 99u + 1u)
      << "a word of 101 characters is unknown";
  EXPECT_EQ(encoded(tokenizer, "[SEP] the"), (std::vector<std::int32_t>{1, 1, 1, 8})) << "no text is a special token";
  EXPECT_EQ(encoded(tokenizer, "the\xff low\xc3"), (std::vector<std::int32_t>{8, 9})) << "no character, no letter";
  EXPECT_EQ(tokenizer.decode(encoded(tokenizer, "Unaffable, lower")).value(), "unaffable , lower");
}

TEST(WordPiece, marks_are_cls_and_sep) {
  const Tokenizer tokenizer = Tokenizer::load_foreign(lines_with()).value();
  EXPECT_EQ(tokenizer.bos(), 2);
  EXPECT_EQ(tokenizer.eos(), 3);
  EXPECT_EQ(std::vector(tokenizer.before().begin(), tokenizer.before().end()), std::vector<std::int32_t>{2});
  EXPECT_EQ(std::vector(tokenizer.after().begin(), tokenizer.after().end()), std::vector<std::int32_t>{3});
  EXPECT_EQ(tokenizer.specials().size(), 5u);
  for (const SpecialToken& special : tokenizer.specials()) EXPECT_EQ(tokenizer.bytes_of(special.token), "");
}

TEST(WordPiece, a_config_says_how_texts_are_cleaned) {
  const Tokenizer cased =
      Tokenizer::load_foreign(lines_with(R"({"do_lower_case": false, "strip_accents": false})")).value();
  EXPECT_EQ(encoded(cased, "The the lowE low\u00e9"), (std::vector<std::int32_t>{18, 8, 1, 9, 17}));
  const Tokenizer accents = Tokenizer::load_foreign(lines_with(R"({"strip_accents": false})")).value();
  EXPECT_EQ(encoded(accents, "H\u00c4LLO"), (std::vector<std::int32_t>{14}));
}

TEST(WordPiece, reads_a_whole_file) {
  const Tokenizer tokenizer = Tokenizer::load_foreign(to_json(whole())).value();
  EXPECT_EQ(encoded(tokenizer, "Unaffable th\u00e9"), (std::vector<std::int32_t>{4, 5, 6, 7}));
  EXPECT_EQ(encoded(tokenizer, "unaffaffable the"), (std::vector<std::int32_t>{4, 5, 5, 6, 7}));
  EXPECT_EQ(encoded(tokenizer, "unaffaffaffable"), std::vector<std::int32_t>{1}) << "of more than 12 characters";
  EXPECT_EQ(tokenizer.bos(), 2);
}

TEST(WordPiece, refuses_what_it_does_not_do) {
  const auto refused = [](const std::string& serialised, ErrorKind kind, const std::string& part) {
    const auto loaded = Tokenizer::load_foreign(serialised);
    ASSERT_FALSE(loaded.ok()) << part;
    EXPECT_EQ(loaded.error().kind, kind) << loaded.error().message;
    EXPECT_NE(loaded.error().message.find(part), std::string::npos) << loaded.error().message;
    EXPECT_FALSE(loaded.error().hint.empty());
  };
  refused(to_json(whole(R"({"type": "Lowercase"})")), ErrorKind::unsupported, "Lowercase");
  Node split = whole();
  split.set("pre_tokenizer", Node::map({{"type", "Whitespace"}}));
  refused(to_json(split), ErrorKind::unsupported, "Whitespace");
  Node added = whole();
  added.set("added_tokens", Node::sequence({Node::map({{"id", 7}, {"content", "the"}, {"special", false}})}));
  refused(to_json(added), ErrorKind::unsupported, "the");
  Node twice = whole();
  twice.set("added_tokens", Node::sequence({Node::map({{"id", 7}, {"content", "it"}, {"special", true}})}));
  refused(to_json(twice), ErrorKind::corrupt, "one number");
  refused(bundle_tokenizer({{"vocab.txt", "a\nb\n"}}), ErrorKind::corrupt, "[UNK]");
  refused(bundle_tokenizer({{"vocab.txt", "a\nb\n"}, {"tokenizer_config.json", "5"}}), ErrorKind::corrupt,
          "tokenizer_config.json");
  std::string deep = to_json(whole());
  deep.insert(1, "\"x\":" + std::string(100000, '[') + std::string(100000, ']') + ",");
  EXPECT_FALSE(Tokenizer::load_foreign(deep).ok());
  refused(
      bundle_tokenizer({{"vocab.txt", kVocabulary},
                        {"tokenizer_config.json", "{\"a\":" + std::string(200, '[') + std::string(200, ']') + "}"}}),
      ErrorKind::corrupt, "deep");
  EXPECT_EQ(Tokenizer::load(to_json(whole())).error().kind, ErrorKind::unsupported) << "for datasets it is none";
}

}  // namespace
}  // namespace systole
