// Byte-level BPE compared with Python's `tokenizers`, which tools/oracles/install puts into the build folder: the same
// tokens for 10 MB of mixed text (1 MB with a sanitizer), the same text for any tokens, and the time of both on one
// thread.

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "execute/data/split_pattern.h"
#include "execute/data/testing/many_scripts.h"
#include "execute/data/tokenizer.h"
#include "ground/base/testing/places.h"
#include "ground/process/capture.h"
#include "ground/store/store.h"

namespace systole {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kBytes = 1'000'000;
#else
constexpr std::size_t kBytes = 10'000'000;
#endif
constexpr int kVocabulary = 8000;

const std::string kTools = SYSTOLE_SOURCE_DIR "/tools/oracles", kFolder = SYSTOLE_BINARY_DIR "/oracles";

void append_item(std::string& file, const void* data, std::size_t elements, std::size_t size) {
  const auto count = static_cast<std::uint32_t>(elements);
  file.append(reinterpret_cast<const char*>(&count), sizeof count);
  file.append(static_cast<const char*>(data), elements * size);
}

// The items of a file written by tools/oracles/tokenizers_oracle.py.
template <typename T>
std::vector<std::vector<T>> items_of(const std::string& file) {
  std::vector<std::vector<T>> items;
  for (std::size_t at = 0; at < file.size();) {
    std::uint32_t count = 0;
    std::memcpy(&count, file.data() + at, sizeof count);
    items.emplace_back(count);
    if (count > 0) std::memcpy(items.back().data(), file.data() + at + sizeof count, count * sizeof(T));
    at += sizeof count + count * sizeof(T);
  }
  return items;
}

std::string run(std::vector<std::string> words) {
  Command command;
  command.argv = std::move(words);
  command.env = {{"PYTHONPATH", kFolder + "/small"}};
  const Captured said = run_captured(command, {.timeout = Seconds(500.0)}).value();
  EXPECT_TRUE(said.exit.ok()) << said.out << said.err;
  return said.out;
}

// Removes characters that were unassigned in Unicode 14 (2021), the version of Debian's PCRE2: `tokenizers` may already
// know whether they are letters.
void remove_unassigned(std::string& text) {
  static const SplitPattern unassigned = SplitPattern::compile(R"([\p{Cn}\p{Co}]+)").value();
  SplitPattern::Matcher matcher(unassigned);
  std::string rest;
  for (std::size_t at = 0; at < text.size();) {
    const TextSpan match = matcher.next(text, at);
    rest += text.substr(at, match.begin - at);
    at = match.end;
  }
  text = std::move(rest);
}

std::vector<std::string> make_texts(Store& folder) {
  const auto golden = open_posix_store(SYSTOLE_SOURCE_DIR "/src/execute/data/golden").value();
  std::istringstream lines(read_text(*golden, "scripts.txt").value());
  std::vector<std::string> sentences, texts;
  for (std::string line; std::getline(lines, line);) sentences.push_back(line);
  ManyScripts made(sentences, 4);
  std::string file, numbers;
  PhiloxStream random(6);
  for (std::size_t bytes = 0; bytes < kBytes; bytes += texts.back().size()) {
    texts.push_back(made.document(100 + random.below(10000)));
    remove_unassigned(texts.back());
    append_item(file, texts.back().data(), texts.back().size(), 1);
  }
  std::string every;  // each character between a letter, a digit and spaces
  for (std::uint32_t c = 1; c < 0x110000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    every += "a";
    append_utf8(every, c);
    every += c % 2 == 0 ? " 1 " : " ";
    if (every.size() < 20000 && c != 0x10FFFF) continue;
    remove_unassigned(every);
    texts.push_back(every);
    append_item(file, every.data(), every.size(), 1);
    every.clear();
  }
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::uint32_t> tokens(random.below(50));
    for (std::uint32_t& token : tokens) token = random.next_u32() >> 4;
    append_item(numbers, tokens.data(), tokens.size(), sizeof(std::uint32_t));
  }
  EXPECT_TRUE(write_whole(folder, "texts.bin", file).ok());
  EXPECT_TRUE(write_whole(folder, "numbers.bin", numbers).ok());
  return texts;
}

// The context of the first token that differs.
std::string first_difference(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ours,
                             const std::vector<std::int32_t>& theirs) {
  std::size_t at = 0;
  while (at < ours.size() && at < theirs.size() && ours[at] == theirs[at]) ++at;
  const auto words = [&](const std::vector<std::int32_t>& tokens) {
    std::string text;
    for (std::size_t i = at < 3 ? 0 : at - 3; i < std::min(tokens.size(), at + 6); ++i)
      text += fmt::format(" {}", testing::PrintToString(std::string(tokenizer.bytes_of(tokens[i]))));
    return text;
  };
  return fmt::format("token {}: {} and{}", at, words(ours), words(theirs));
}

TEST(TokenizerOracle, PythonsTokenizersGiveTheSame) {
  std::filesystem::create_directories(kFolder + "/text");
  const auto folder = open_posix_store(kFolder + "/text").value();
  run({kTools + "/install", "small", kFolder + "/small"});
  ASSERT_FALSE(HasFailure()) << "the oracle cannot be installed";
  const std::vector<std::string> texts = make_texts(*folder);
  std::istringstream said(
      run({"python3", kTools + "/tokenizers_oracle.py", kFolder + "/text", fmt::to_string(kVocabulary)}));
  ASSERT_FALSE(HasFailure());

  std::size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  const auto numbers = items_of<std::uint32_t>(read_text(*folder, "numbers.bin").value());
  std::string name;
  int tokenizers = 0;
  for (double seconds = 0; said >> name >> seconds; ++tokenizers) {
    const Tokenizer tokenizer = Tokenizer::load(read_text(*folder, name + ".json").value()).value();
    const auto expected = items_of<std::int32_t>(read_text(*folder, name + ".tokens").value());
    ASSERT_EQ(expected.size(), texts.size());
    Encoder encoder(tokenizer);
    std::vector<std::vector<std::int32_t>> tokens(texts.size());
    const auto began = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < texts.size(); ++i) encoder.encode(texts[i], tokens[i]);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      ASSERT_TRUE(tokens[i] == expected[i])
          << name << ", text " << i << ", " << first_difference(tokenizer, tokens[i], expected[i]);
      ASSERT_EQ(tokenizer.decode(tokens[i]).value(), texts[i]) << name << ", text " << i;
    }
    const auto decoded = items_of<char>(read_text(*folder, name + ".decoded").value());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::vector<std::int32_t> some;
      for (const std::uint32_t n : numbers[i])
        some.push_back(static_cast<std::int32_t>(n % static_cast<std::uint32_t>(tokenizer.vocabulary())));
      std::string text = tokenizer.decode(some).value();
      replace_ill_formed_parts(text);
      ASSERT_EQ(text, std::string(decoded[i].begin(), decoded[i].end())) << name << ", numbers " << i;
    }
    std::cout << fmt::format("NOTE {}: {:.1f} MB in {} texts; one thread, MB/s: {:.1f}, tokenizers {:.1f}\n", name,
                             static_cast<double>(bytes) * 1e-6, texts.size(), static_cast<double>(bytes) * 1e-6 / took,
                             static_cast<double>(bytes) * 1e-6 / seconds);
  }
  EXPECT_EQ(tokenizers, 4);
}

}  // namespace
}  // namespace systole
