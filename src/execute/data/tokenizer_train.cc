// Tokenizer::train. SentencePiece's trainer gets the plain stretches between newlines, in parts of at most 2 KiB that
// end before a space, so that no sentence is dropped for its length and no piece crosses a line's end.

#include <sentencepiece_trainer.h>

#include <charconv>
#include <optional>
#include <unordered_map>

#include "execute/data/chunks.h"
#include "execute/data/sentencepiece_library.h"
#include "execute/data/tokenizer.h"

namespace systole {
namespace {

constexpr std::size_t kSentenceBytes = 2048;
constexpr int kFixedTokens = 259;

class Sentences : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(std::span<const std::string> documents) : documents_(documents) { Sentences::Next(); }

  bool done() const override { return sentence_.empty(); }
  const std::string& value() const override { return sentence_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    sentence_.clear();
    while (true) {
      const TextChunk chunk = first_chunk(left_);
      if (chunk.length == 0 && !sentence_.empty()) return;
      if (chunk.length == 0) {
        if (document_ == documents_.size()) return;
        left_ = documents_[document_++];
        continue;
      }
      const bool fits = chunk.plain && sentence_.size() + chunk.length <= kSentenceBytes;
      if (!fits && !sentence_.empty()) {
        if (!chunk.plain) left_.remove_prefix(chunk.length);
        return;
      }
      if (chunk.plain) sentence_.append(left_.substr(0, chunk.length));
      left_.remove_prefix(chunk.length);
    }
  }

 private:
  std::span<const std::string> documents_;
  std::size_t document_ = 0;
  std::string_view left_;
  std::string sentence_;
};

Error cannot_train(const TokenizerOptions& options, std::string_view why, std::string hint) {
  return key_error(ErrorKind::invalid, "data.tokenizer.vocabulary",
                   "cannot train a {} tokenizer of {} tokens on this text: {}", name_of(options.kind),
                   options.vocabulary, why)
      .hinted(std::move(hint));
}

Error too_many(const TokenizerOptions& options, std::int64_t most) {
  return cannot_train(options, fmt::format("no more than {} come of it", most),
                      fmt::format("data.tokenizer.vocabulary: {}, which is the most, or give more text", most));
}

// The number after these words; nothing if the words do not appear.
std::optional<std::int64_t> number_behind(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == text.npos) return std::nullopt;
  text.remove_prefix(at + words.size());
  std::int64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) return std::nullopt;
  return number;
}

// Translates SentencePiece's error, which names its own options: "FILE(LINE) [CONDITION] Vocabulary size is smaller
// than required_chars. 265 vs 276. Increase vocab_size ...", "... too high (900). Please set it to a value <= 759.".
Error refused_by_trainer(const TokenizerOptions& options, std::string_view said) {
  if (const auto most = number_behind(said, "set it to a value <= ")) return too_many(options, *most);
  if (const auto least = number_behind(said, fmt::format("required_chars. {} vs ", options.vocabulary))) {
    return cannot_train(options, fmt::format("bytes, marks and the characters of it are {} already", *least),
                        fmt::format("data.tokenizer.vocabulary: {}, which is the least", *least));
  }
  if (const auto at = said.find("] "); at != said.npos) said.remove_prefix(at + 2);  // after file and condition
  return cannot_train(options, said, "data.tokenizer.vocabulary: a size that the text can fill, or give more text");
}

}  // namespace

Result<Tokenizer> Tokenizer::train(const TokenizerOptions& options, std::span<const std::string> documents) {
  if (options.vocabulary <= kFixedTokens) {
    return key_error(ErrorKind::invalid, "data.tokenizer.vocabulary",
                     "{} leaves no room: {} tokens are bytes and special ones", options.vocabulary, kFixedTokens)
        .hinted("data.tokenizer.vocabulary: 512 or more");
  }
  TRY(load_sentencepiece_trainer());
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", name_of(options.kind)},
      {"vocab_size", fmt::to_string(options.vocabulary)},
      {"num_threads", fmt::to_string(options.threads)},
      {"byte_fallback", "true"},
      {"character_coverage", "0.9995"},
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "false"},
      {"remove_extra_whitespaces", "false"},
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "-1"},
      {"minloglevel", "3"},  // otherwise it prints
  };
  Sentences sentences(documents);
  if (sentences.done()) return cannot_train(options, "there is none", "give some text: data.train.files");
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &sentences, &model);
  if (!status.ok()) return refused_by_trainer(options, status.message());
  Tokenizer tokenizer = TRY(load(std::move(model)));
  if (tokenizer.vocabulary() != options.vocabulary) return too_many(options, tokenizer.vocabulary());
  return tokenizer;
}

}  // namespace systole
