// Byte-level BPE against the output of Python's `tokenizers` for the same texts (golden/texts.json, written by
// tools/oracles/make_tokenizers.py), and what is refused.

#include "execute/data/byte_level_bpe.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "execute/data/byte_alphabet.h"
#include "execute/data/tokenizer_files.h"
#include "ground/base/philox.h"
#include "ground/base/testing/places.h"

namespace systole {
namespace {

using Json = nlohmann::json;

Store& golden() {
  static const std::unique_ptr<Store> store = open_posix_store(SYSTOLE_SOURCE_DIR "/src/execute/data/golden").value();
  return *store;
}

Tokenizer golden_tokenizer(const std::string& path) {
  return Tokenizer::load(read_tokenizer(golden(), path).value()).value();
}

// gpt2.json with a change.
Result<Tokenizer> changed(const std::function<void(Json&)>& change) {
  Json json = Json::parse(read_text(golden(), "gpt2.json").value());
  change(json);
  return Tokenizer::load(json.dump());
}

class GoldenTokenizer : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTokenizer, GivesTheTokensOfPythons) {
  const Json told = Json::parse(read_text(golden(), "texts.json").value());
  const bool pair = GetParam() == "gpt2_pair";
  const Tokenizer tokenizer = golden_tokenizer(pair ? GetParam() : GetParam() + ".json");
  EXPECT_EQ(tokenizer.family(), TokenizerFamily::byte_level_bpe);
  const auto& all = told["tokens"][pair ? "gpt2" : GetParam()];
  ASSERT_GE(all.size(), 40u);
  Encoder encoder(tokenizer);
  for (int round = 0; round < 2; ++round) {  // the second time from the encoder's cache
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto text = told["texts"][i].get<std::string>();
      const auto expected = all[i].get<std::vector<std::int32_t>>();
      std::vector<std::int32_t> tokens;
      encoder.encode(text, tokens);
      ASSERT_EQ(tokens, expected) << text;
      EXPECT_EQ(tokenizer.decode(tokens).value(), text);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenTokenizer, testing::Values("gpt2", "llama3", "gpt4o", "steps", "gpt2_pair"),
                         [](const auto& name) { return name.param; });

TEST(ByteLevelBpe, KnowsItsEnds) {
  const Tokenizer gpt2 = golden_tokenizer("gpt2.json"), llama3 = golden_tokenizer("llama3.json");
  EXPECT_EQ(gpt2.eos(), 0);
  EXPECT_EQ(gpt2.bos(), 0);
  EXPECT_EQ(llama3.bos(), 0);
  EXPECT_EQ(llama3.eos(), 1);
  EXPECT_EQ(gpt2.vocabulary(), 700);
  EXPECT_TRUE(gpt2.before().empty());
  EXPECT_EQ(std::vector(llama3.before().begin(), llama3.before().end()), (std::vector{llama3.bos()}));
  EXPECT_TRUE(gpt2.after().empty() && llama3.after().empty());
  for (const std::int32_t token : {llama3.bos(), llama3.eos()}) EXPECT_TRUE(llama3.bytes_of(token).empty());
}

// The marks that `tokenizers` puts around a single text.
TEST(ByteLevelBpe, PostProcessorsPutTheirMarks) {
  const std::string whole = read_text(golden(), "llama3.json").value();
  const auto marks = [&](const std::string& post, const std::string& config = "{}") {
    const std::size_t at = whole.find("\"post_processor\"");
    const std::size_t end = whole.find("\"decoder\"");
    EXPECT_TRUE(at < end && end != whole.npos);
    const std::string text = whole.substr(0, at) + "\"post_processor\": " + post + ", " + whole.substr(end);
    const auto made = Tokenizer::load(bundle_tokenizer({{"tokenizer.json", text}, {"tokenizer_config.json", config}}));
    if (!made.ok()) return made.error().message;
    return fmt::format("{} $A {}", fmt::join(made->before(), " "), fmt::join(made->after(), " "));
  };
  EXPECT_EQ(marks("null"), " $A ");
  EXPECT_EQ(marks(R"({"type": "ByteLevel"})", R"({"add_bos_token": true, "add_eos_token": true})"), "0 $A 1");
  for (const char* type : {"RobertaProcessing", "BertProcessing"}) {
    const std::string post =
        fmt::format(R"({{"type": "{}", "sep": ["<|end_of_text|>", 1], "cls": ["<|begin_of_text|>", 0]}})", type);
    EXPECT_EQ(marks(post), "0 $A 1");
    EXPECT_EQ(marks(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"}, )" + post + "]}"), "0 $A 1");
  }
  const std::string special = R"("special_tokens": {"a": {"ids": [5, 6]}, "b": {"ids": [7]}})";
  const std::string single = R"("single": [{"SpecialToken": {"id": "a"}}, {"SpecialToken": {"id": "b"}}, )"
                             R"({"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "b"}}])";
  const std::string named = R"({"bos_token": "<|begin_of_text|>"})";
  EXPECT_EQ(marks(R"({"type": "TemplateProcessing", )" + single + ", " + special + "}", named), "5 6 7 $A 7");
  EXPECT_EQ(marks(R"({"type": "TemplateProcessing", )" + single + R"(, "special_tokens": {}})", named),
            "the tokenizer's tokenizer.json is damaged: its template has no token 'a'");
  EXPECT_EQ(
      marks(R"({"type": "TemplateProcessing", "single": ["$A"]})"),
      "the tokenizer's tokenizer.json is damaged: a piece of its template is neither a special token nor the text");
  for (const char* token : {"99999999", "4294967296", "-1"}) {
    EXPECT_EQ(marks(R"({"type": "RobertaProcessing", "cls": ["<|begin_of_text|>", 0], "sep": ["x", )" +
                    std::string(token) + "]}"),
              "this tokenizer is damaged: its post-processor puts a token that is not there")
        << token;
  }
  EXPECT_EQ(marks(R"({"type": "RobertaProcessing"})"),
            "the tokenizer's tokenizer.json is damaged: its RobertaProcessing has no cls");
  EXPECT_EQ(marks(R"({"type": "Newer"})"), "the tokenizer's post_processor: of the unknown kind 'Newer'");
}

TEST(ByteLevelBpe, TheFilesBesideItSayMore) {
  const auto store = make_memory_store();
  ASSERT_TRUE(write_whole(*store, "tokenizer.json", read_text(golden(), "llama3.json").value()).ok());
  ASSERT_TRUE(
      write_whole(*store, "tokenizer_config.json", R"({"bos_token": {"content": "!"}, "eos_token": "?"})").ok());
  const Result<Tokenizer> silent = Tokenizer::load(read_tokenizer(*store, "").value());
  EXPECT_EQ(silent.error().message, "this tokenizer is damaged: its special token 2 is a byte");
  ASSERT_TRUE(write_whole(*store, "tokenizer_config.json", R"({"eos_token": "<|begin_of_text|>"})").ok());
  const std::string bundle = read_tokenizer(*store, "").value();
  EXPECT_EQ(Tokenizer::load(bundle).value().eos(), 0);
  EXPECT_EQ(unbundle_tokenizer(bundle).value().at("tokenizer.json"), read_text(golden(), "llama3.json").value());
  ASSERT_TRUE(write_whole(*store, "tokenizer_config.json", R"({"eos_token": "<gone>"})").ok());
  EXPECT_EQ(Tokenizer::load(read_tokenizer(*store, "").value()).error().kind, ErrorKind::corrupt);
}

TEST(ByteLevelBpe, EveryByteComesBack) {
  PhiloxStream random(5);
  for (const char* name : {"gpt2.json", "llama3.json", "steps.json"}) {
    const Tokenizer tokenizer = golden_tokenizer(name);
    Encoder encoder(tokenizer);
    for (int trial = 0; trial < 2000; ++trial) {
      std::string text;
      for (std::uint64_t left = random.below(60); left > 0; --left) {
        const std::uint64_t kind = random.below(4);
        text += kind == 0 ? " " : kind == 1 ? "th" : std::string(1, static_cast<char>(random.below(256)));
      }
      std::vector<std::int32_t> tokens;
      encoder.encode(text, tokens);
      ASSERT_EQ(tokenizer.decode(tokens).value(), text) << testing::PrintToString(text);
      for (const std::int32_t token : tokens) ASSERT_FALSE(tokenizer.bytes_of(token).empty());
    }
  }
}

// A word's merges, straight from the definition.
std::vector<std::int32_t> merged_slowly(std::vector<std::int32_t> word, std::span<const Merge> merges) {
  for (bool again = true; again;) {
    again = false;
    for (const Merge& merge : merges) {
      for (std::size_t i = 0; i + 1 < word.size() && !again; ++i) {
        if (word[i] != merge.left || word[i + 1] != merge.right) continue;
        word[i] = merge.result;
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        again = true;
      }
      if (again) break;
    }
  }
  return word;
}

TEST(Merges, ShortAndLongWordsFollowTheDefinition) {
  PhiloxStream random(9);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<Merge> merges;
    for (std::int32_t result = 4; result < 30; ++result) {
      const auto any = [&] { return static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(result))); };
      const Merge merge{any(), any(), result};
      const bool known = std::any_of(merges.begin(), merges.end(),
                                     [&](const Merge& m) { return m.left == merge.left && m.right == merge.right; });
      if (!known) merges.push_back(merge);
    }
    const MergeTable table(merges);
    for (const std::size_t size : {0, 1, 2, 3, 17, 47, 48, 49, 50, 200}) {
      std::vector<std::int32_t> word(size);
      for (std::int32_t& token : word) token = static_cast<std::int32_t>(random.below(4));
      const auto expected = merged_slowly(word, merges);
      table.apply(word);
      ASSERT_EQ(word, expected) << "of " << size << " tokens";
    }
  }
}

TEST(ByteAlphabet, SpellsEveryByte) {
  std::string letters, bytes;
  for (int byte = 0; byte < 256; ++byte) {
    letters += letter_of(static_cast<unsigned char>(byte));
    bytes += static_cast<char>(byte);
  }
  EXPECT_EQ(spelled_by(letters), bytes);
  EXPECT_EQ(letter_of(' '), "Ġ");
  EXPECT_EQ(letter_of('\n'), "Ċ");
  EXPECT_EQ(spelled_by("a b"), std::nullopt);
  EXPECT_EQ(spelled_by("▁a"), std::nullopt);
}

TEST(ByteLevelBpe, RefusesOtherKindsByName) {
  const auto refusal = [](const std::function<void(Json&)>& change) {
    const Result<Tokenizer> refused = changed(change);
    if (refused.ok()) return std::string("taken");
    EXPECT_EQ(refused.error().kind, ErrorKind::unsupported) << refused.error().message;
    EXPECT_FALSE(refused.error().hint.empty());
    return refused.error().message;
  };
  EXPECT_TRUE(changed([](Json&) {}).ok());
  EXPECT_EQ(refusal([](Json& j) { j["model"]["type"] = "WordPiece"; }),
            "the tokenizer's model: 'WordPiece' is not BPE");
  EXPECT_EQ(refusal([](Json& j) {
              j["normalizer"] = {{"type", "NFC"}};
            }),
            "the tokenizer's normalizer: 'NFC' changes the text, which could not be given back as it was");
  EXPECT_EQ(refusal([](Json& j) {
              j["pre_tokenizer"] = {{"type", "Metaspace"}};
            }),
            "the tokenizer's pre_tokenizer: of the unknown kind 'Metaspace'");
  EXPECT_EQ(refusal([](Json& j) { j["pre_tokenizer"] = nullptr; }),
            "the tokenizer's pre_tokenizer: it is not byte-level");
  EXPECT_EQ(refusal([](Json& j) { j["pre_tokenizer"]["add_prefix_space"] = true; }),
            "the tokenizer's pre_tokenizer: it puts a space before the text (add_prefix_space)");
  EXPECT_EQ(refusal([](Json& j) {
              j["decoder"] = {{"type", "WordPiece"}};
            }),
            "the tokenizer's decoder: 'WordPiece' is not ByteLevel");
  EXPECT_EQ(refusal([](Json& j) { j["model"]["byte_fallback"] = true; }),
            "the tokenizer's model: its tokens are characters with bytes as a fallback (byte_fallback), not bytes");
  EXPECT_EQ(refusal([](Json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }),
            "the tokenizer's model: it marks parts of words (end_of_word_suffix)");
  EXPECT_EQ(refusal([](Json& j) { j["model"]["dropout"] = 0.1; }),
            "the tokenizer's model: it drops merges at random (dropout)");
  EXPECT_EQ(refusal([](Json& j) {
              j["added_tokens"].push_back({{"id", 700}, {"content", "<m>"}, {"special", false}, {"lstrip", true}});
            }),
            "the tokenizer's added token: '<m>' takes in what is around it (lstrip)");
  EXPECT_EQ(refusal([](Json& j) {
              j["added_tokens"] = Json::array();
              j["model"]["vocab"].erase("<|endoftext|>");
            }),
            "nothing says which token of this tokenizer ends a document");
  EXPECT_EQ(refusal([](Json& j) {
              j["model"]["vocab"].erase("Ń");
              j["model"]["merges"] = Json::array();
            }),
            "this tokenizer cannot keep every byte of a text: it has no token for byte 0xAD");
}

TEST(ByteLevelBpe, LeavesOutBytesThatHaveNoTokenWhereThatIsAsked) {
  Json json = Json::parse(read_text(golden(), "gpt2.json").value());
  json["model"]["vocab"].erase("\u0143");  // byte 0xAD
  json["model"]["merges"] = Json::array();
  const Tokenizer lacking = Tokenizer::load_foreign(json.dump()).value();
  EXPECT_FALSE(lacking.keeps_text());
  for (const auto& [text, kept] : {std::pair("a\xC2\xAD"
                                             "b",
                                             "a\xC2"
                                             "b"),
                                   std::pair("\xAD", ""), std::pair("ab", "ab")}) {
    for (int round = 0; round < 2; ++round) {
      std::vector<std::int32_t> tokens;
      Encoder(lacking).encode(text, tokens);
      EXPECT_EQ(lacking.decode(tokens).value(), kept);
    }
  }
  EXPECT_TRUE(Tokenizer::load_foreign(read_text(golden(), "gpt2.json").value()).value().keeps_text());
}

TEST(ByteLevelBpe, RefusesWhatIsDamaged) {
  const auto refusal = [](const std::function<void(Json&)>& change) {
    const Result<Tokenizer> refused = changed(change);
    if (refused.ok()) return std::string("taken");
    EXPECT_EQ(refused.error().kind, ErrorKind::corrupt) << refused.error().message;
    return refused.error().message;
  };
  EXPECT_EQ(refusal([](Json& j) { j["model"]["vocab"]["!"] = 2; }),
            "this tokenizer is damaged: two tokens have the number 2");
  EXPECT_EQ(refusal([](Json& j) { j["model"]["vocab"]["!"] = -3; }),
            "the tokenizer's tokenizer.json is damaged: the number of token '!' is -3");
  EXPECT_EQ(refusal([](Json& j) { j["model"]["vocab"]["!"] = 1'000'000'000; }),
            "this tokenizer is damaged: a token's number is not between 0 and 10000000");
  EXPECT_EQ(refusal([](Json& j) { j["model"]["merges"][0] = "a b c"; }),
            "the tokenizer's tokenizer.json is damaged: the merge 'a b c' is not two tokens");
  EXPECT_EQ(refusal([](Json& j) {
              j["model"]["merges"][0] = {"zz", "qq"};
            }),
            "this tokenizer is damaged: merge 0 is 'zz' and 'qq', and 'zz' is no token");
  EXPECT_EQ(refusal([](Json& j) { j["model"]["merges"][0] = Json::array({"a"}); }),
            "the tokenizer's tokenizer.json is damaged: a merge is not two tokens");
  EXPECT_EQ(refusal([](Json& j) { j.erase("model"); }), "the tokenizer's tokenizer.json is damaged: it has no model");
  EXPECT_EQ(refusal([](Json& j) {
              j["added_tokens"].push_back({{"id", 5}, {"content", "<m>"}, {"special", false}});
            }),
            "this tokenizer is damaged: the added token '<m>' has the number 5, which another token has");
  EXPECT_EQ(Tokenizer::load("{").error().kind, ErrorKind::corrupt);
  EXPECT_EQ(Tokenizer::load("{}").error().kind, ErrorKind::corrupt);
  EXPECT_EQ(Tokenizer::load(R"({"systole_tokenizer":1,"files":{}})").error().kind, ErrorKind::corrupt);
  EXPECT_EQ(Tokenizer::load(R"({"systole_tokenizer":9,"files":{}})").error().kind, ErrorKind::unsupported);
}

TEST(ByteLevelBpe, AnAddedTokenMayStandInTheVocabularyToo) {
  const Result<Tokenizer> tokenizer = changed([](Json& j) {
    j["model"]["vocab"]["<m>"] = 700;
    j["added_tokens"].push_back({{"id", 700}, {"content", "<m>"}, {"special", false}});
  });
  EXPECT_EQ(tokenizer.value().bytes_of(700), "<m>");
}

TEST(ByteLevelBpe, RefusesWhatIsNestedTooDeep) {
  std::string text = read_text(golden(), "gpt2.json").value();
  const std::string deep = std::string(2'000'000, '[') + std::string(2'000'000, ']');
  text.erase(text.rfind('}'));
  text += ", \"normalizer\": " + deep + "}";
  const auto refused = Tokenizer::load(text);
  EXPECT_EQ(refused.error().message,
            "the tokenizer's tokenizer.json is damaged: lists and maps stand in each other more than 100 deep");
}

TEST(TokenizerFiles, AreThoseOfATokenizerAndNoOthers) {
  const auto files = unbundle_tokenizer(R"({"systole_tokenizer":1,"files":{"model.safetensors":"x"}})");
  EXPECT_EQ(files.error().kind, ErrorKind::corrupt);
  EXPECT_EQ(files.error().message, "this tokenizer is damaged: 'model.safetensors' is no file of a tokenizer");
}

TEST(TokenizerFiles, SaysWhatAFolderLacks) {
  const auto store = make_memory_store();
  ASSERT_TRUE(store->make_dirs("model").ok());
  EXPECT_EQ(read_tokenizer(*store, "model").error().message, "this folder holds no tokenizer");
  ASSERT_TRUE(write_whole(*store, "model/vocab.json", "{}").ok());
  EXPECT_EQ(read_tokenizer(*store, "model").error().hint, "put merges.txt beside vocab.json");
  ASSERT_TRUE(write_whole(*store, "model/tokenizer.json", "{\"a\": ").ok());
  EXPECT_EQ(read_tokenizer(*store, "model").error().message, "this file is not JSON");
}

TEST(SplitPattern, TranslatesWhatMeansTheSameAndRefusesTheRest) {
  EXPECT_EQ(translate_pattern(R"(\s+(?!\S)|[^\s\p{L}])").value(),
            R"([\t-\r \x{85}\p{Z}]+(?![^\t-\r \x{85}\p{Z}])|[^\t-\r \x{85}\p{Z}\p{L}])");
  EXPECT_EQ(translate_pattern(R"(\p{Han}|\d{1,3}|\u4e00)").value(), R"(\p{sc:Han}|\p{Nd}{1,3}|\x{4e00})");
  for (const char* other :
       {R"(\w+)", R"(a\b)", "^a", "a$", "[a[b]]", "[a&&b]", "(?m:a)", "a{1,3}+", "a\\", R"([\S])", "[]a]",
        // Python's tokenizers read these: a{0,3}, (?:a{2})?, x(?i:b|c).
        "a{,3}", "a{2}?", "x(?i)b|c", "(?:a|(*ACCEPT))b", "(*UTF)a"}) {
    const auto refused = translate_pattern(other);
    ASSERT_FALSE(refused.ok()) << other;
    EXPECT_EQ(refused.error().kind, ErrorKind::unsupported);
  }
  EXPECT_EQ(translate_pattern("(?i)b|c{2,3}?").value(), "(?i)b|c{2,3}?");
  for (const char* other : {"(a", "a*", "", R"(\p{Nonsense})", "[b-a]"})
    EXPECT_FALSE(SplitPattern::compile(other).ok()) << other;
}

}  // namespace
}  // namespace systole
