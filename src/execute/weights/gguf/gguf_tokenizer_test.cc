#include "execute/weights/gguf/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "execute/data/tokenizer_files.h"
#include "execute/weights/testing/gguf_of_folder.h"
#include "ground/base/testing/places.h"

namespace systole {
namespace {

const std::string kGolden = SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/";

Result<GgufTokenizer> read(const std::string& bytes) {
  const auto store = make_memory_store();
  write_whole(*store, "m.gguf", bytes).value();
  return tokenizer_of_gguf(GgufFile::open(*store, "m.gguf").value());
}

std::vector<std::int32_t> tokens_of(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::int32_t> tokens;
  Encoder(tokenizer).encode(text, tokens);
  return tokens;
}

TEST(GgufTokenizer, EncodesAsTheFoldersDoes) {
  for (const char* name : {"gpt2", "llama"}) {
    SCOPED_TRACE(name);
    const auto store = open_posix_store(kGolden + name).value();
    const Tokenizer theirs = Tokenizer::load(read_tokenizer(*store, "").value()).value();
    const Tokenizer ours = Tokenizer::load(read(gguf_of_folder(kGolden + name)).value().model).value();
    for (const std::string text : {"", "All human beings", "don't  stop\n\n 12345 \xE0\xA4\xB8 \xff<s></s>[PAD301]"}) {
      EXPECT_EQ(tokens_of(ours, text), tokens_of(theirs, text)) << text;
      EXPECT_EQ(ours.decode(tokens_of(ours, text)).value(), text);
    }
    EXPECT_EQ(ours.bos(), theirs.bos());
    EXPECT_EQ(ours.eos(), theirs.eos());
    EXPECT_TRUE(std::ranges::equal(ours.before(), theirs.before()));
    EXPECT_EQ(ours.vocabulary(), 304);
    EXPECT_EQ(ours.bytes_of(303), "") << "an unused token spells nothing";
  }
}

// The golden GPT-2's tokens and merges, with another pattern; "": none.
GgufWriter byte_level(const std::string& pattern) {
  const std::string file = gguf_of_folder(kGolden + "gpt2");
  const auto store = make_memory_store();
  write_whole(*store, "m.gguf", file).value();
  const GgufFile golden = GgufFile::open(*store, "m.gguf").value();
  std::vector<std::int32_t> types;
  for (const double type : *golden.numbers("tokenizer.ggml.token_type").value())
    types.push_back(static_cast<std::int32_t>(type));
  GgufWriter written;
  written.text("tokenizer.ggml.model", "gpt2")
      .texts("tokenizer.ggml.tokens", *golden.texts("tokenizer.ggml.tokens").value())
      .i32s("tokenizer.ggml.token_type", types)
      .texts("tokenizer.ggml.merges", *golden.texts("tokenizer.ggml.merges").value());
  if (!pattern.empty()) written.text("tokenizer.ggml.pre", pattern);
  return written;
}

TEST(GgufTokenizer, KnowsPatternsByTheirNames) {
  for (const char* pattern : {"gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    GgufWriter file = byte_level(pattern);
    const auto got = read(file.u32("tokenizer.ggml.bos_token_id", 0).u32("tokenizer.ggml.eos_token_id", 1).finish());
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(got->begins_with_bos, std::string(pattern) == "llama-bpe") << "where the file does not say";
    const auto tokenizer = Tokenizer::load(got->model);
    ASSERT_TRUE(tokenizer.ok()) << pattern << tokenizer.error().message;
    const std::string text = "it's 2024 \xE0\xA4\xB8";
    EXPECT_EQ(tokenizer->decode(tokens_of(*tokenizer, text)).value(), text);
  }
  EXPECT_EQ(read(byte_level("falcon").finish()).error().message,
            "the tokenizer splits a text by 'falcon' (tokenizer.ggml.pre), which is not known here");
  EXPECT_EQ(read(byte_level("").finish()).error().message,
            "the file does not say how its tokenizer splits a text (tokenizer.ggml.pre)");
}

// SmolLM2's vocabulary has no tokens for some control characters.
TEST(GgufTokenizer, MayLackBytesInPrompts) {
  GgufWriter file;
  file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2").texts("tokenizer.ggml.merges", {});
  file.texts("tokenizer.ggml.tokens", {"</s>", "a", "b"}).i32s("tokenizer.ggml.token_type", {3, 1, 1});
  const auto kept = read(file.u32("tokenizer.ggml.eos_token_id", 0).finish()).value();
  EXPECT_EQ(Tokenizer::load(kept.model).error().kind, ErrorKind::unsupported);
  const Tokenizer tokenizer = load_for_prompts(kept).value();
  EXPECT_EQ(tokens_of(tokenizer,
                      "a\x04"
                      "cb"),
            (std::vector<std::int32_t>{1, 2}));
}

// SmolLM's pattern keeps digits apart, GPT-2's does not: with the merge "1 2" it shows.
TEST(GgufTokenizer, SplitsDigitsWhereThePatternDoes) {
  const auto count = [](const std::string& pattern) {
    std::vector<std::string> tokens{"</s>"};
    std::vector<std::int32_t> types{3};
    const auto store = make_memory_store();
    write_whole(*store, "m.gguf", gguf_of_folder(kGolden + "gpt2")).value();
    const GgufFile golden = GgufFile::open(*store, "m.gguf").value();
    for (std::size_t i = 2; i < 258; ++i) tokens.push_back((*golden.texts("tokenizer.ggml.tokens").value())[i]);
    tokens.emplace_back("12");
    types.resize(tokens.size(), 1);
    const std::string file = GgufWriter()
                                 .text("tokenizer.ggml.model", "gpt2")
                                 .text("tokenizer.ggml.pre", pattern)
                                 .texts("tokenizer.ggml.tokens", tokens)
                                 .i32s("tokenizer.ggml.token_type", types)
                                 .texts("tokenizer.ggml.merges", {"1 2"})
                                 .u32("tokenizer.ggml.eos_token_id", 0)
                                 .finish();
    return tokens_of(Tokenizer::load(read(file).value().model).value(), "12").size();
  };
  EXPECT_EQ(count("gpt-2"), 1u);
  EXPECT_EQ(count("smollm"), 2u);
}

TEST(GgufTokenizer, RefusesByName) {
  const auto why = [](const GgufWriter& file) {
    const auto got = read(file.finish());
    return got.ok() ? "taken" : got.error().message;
  };
  EXPECT_EQ(why(GgufWriter()), "the file has no tokenizer.ggml.model");
  EXPECT_EQ(why(GgufWriter().text("tokenizer.ggml.model", "t5")),
            "the file's tokenizer is 't5' (tokenizer.ggml.model), which is not read");
  GgufWriter beyond = byte_level("gpt-2");
  EXPECT_EQ(why(beyond.u32("tokenizer.ggml.eos_token_id", 304)),
            "tokenizer.ggml.eos_token_id is 304, and there are 304 tokens");
  const auto pieces = [](const std::vector<std::string>& tokens, const std::vector<std::int32_t>& types) {
    return GgufWriter()
        .text("tokenizer.ggml.model", "llama")
        .texts("tokenizer.ggml.tokens", tokens)
        .i32s("tokenizer.ggml.token_type", types);
  };
  EXPECT_EQ(why(pieces({"a", ""}, {1, 1})), "tokenizer.ggml.tokens: token 1 is empty");
  EXPECT_EQ(why(pieces({"a", "\xff"}, {1, 1})), "tokenizer.ggml.tokens: token 1 is not UTF-8");
  EXPECT_EQ(why(pieces({"a", "b"}, {1})), "tokenizer.ggml.token_type has 1 numbers, and there are 2 tokens");
  EXPECT_EQ(why(pieces({"a", "b"}, {1, 7})), "tokenizer.ggml.token_type: token 1 is of type 7");
  EXPECT_EQ(why(pieces({"a", "b"}, {1, 1}).f32s("tokenizer.ggml.scores", {0})),
            "tokenizer.ggml.scores has 1 numbers, and there are 2 tokens");
}

// Llama 2's kind: merges by score, bytes where no piece fits, a space before the text.
TEST(GgufTokenizer, MakesASentencePieceModel) {
  std::vector<std::string> tokens{"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types{2, 3, 3};
  std::vector<float> scores{0, 0, 0};
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(fmt::format("<0x{:02X}>", byte));
    types.push_back(6);
    scores.push_back(0);
  }
  for (const auto& [piece, score] :
       {std::pair("ab", -1.0F),
        std::pair("\xE2\x96\x81"
                  "ab",
                  -2.0F),
        std::pair("\xE2\x96\x81", -10.0F), std::pair("a", -11.0F), std::pair("b", -12.0F)}) {
    tokens.emplace_back(piece);
    types.push_back(1);
    scores.push_back(score);
  }
  const auto written = [&](bool space) {
    return GgufWriter()
        .text("tokenizer.ggml.model", "llama")
        .texts("tokenizer.ggml.tokens", tokens)
        .i32s("tokenizer.ggml.token_type", types)
        .f32s("tokenizer.ggml.scores", scores)
        .u32("tokenizer.ggml.bos_token_id", 1)
        .u32("tokenizer.ggml.eos_token_id", 2)
        .u32("tokenizer.ggml.unknown_token_id", 0)
        .flag("tokenizer.ggml.add_space_prefix", space)
        .finish();
  };
  const Tokenizer tokenizer = load_for_prompts(read(written(true)).value()).value();
  EXPECT_EQ(tokenizer.family(), TokenizerFamily::sentencepiece);
  EXPECT_EQ(tokens_of(tokenizer, "ab"), (std::vector<std::int32_t>{260}));
  EXPECT_EQ(tokens_of(tokenizer, "aab!"), (std::vector<std::int32_t>{261, 262, 259, 3 + '!'}));
  EXPECT_EQ(tokenizer.bos(), 1);
  EXPECT_EQ(tokenizer.eos(), 2);
  EXPECT_TRUE(std::ranges::equal(tokenizer.before(), std::vector<std::int32_t>{1}));
  EXPECT_TRUE(tokenizer.begins_with_space());
  const Tokenizer bare = load_for_prompts(read(written(false)).value()).value();
  EXPECT_EQ(tokens_of(bare, "ab"), (std::vector<std::int32_t>{259}));
  EXPECT_FALSE(bare.begins_with_space());
}

}  // namespace
}  // namespace systole
