// Tokenizer::train. SentencePiece's trainer sees the plain stretches between newlines, in pieces of at most 2 KiB that
// end before a space, so that no sentence is dropped for its length and no piece reaches over a line's end.

#include <sentencepiece_trainer.h>

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

Error cannot_train(const TokenizerOptions& options, std::string why) {
  if (const auto at = why.find("] "); at != std::string::npos) why = why.substr(at + 2);  // behind file and condition
  return error(ErrorKind::invalid, "cannot train a {} tokenizer of {} tokens on this text: {}", name_of(options.kind),
               options.vocabulary, why)
      .hinted("set `tokenizer.vocabulary` to a size that the text can fill, or give more text");
}

}  // namespace

Result<Tokenizer> Tokenizer::train(const TokenizerOptions& options, std::span<const std::string> documents) {
  if (options.vocabulary <= kFixedTokens) {
    return error(ErrorKind::invalid, "a vocabulary of {} leaves no room: {} tokens are bytes and special ones",
                 options.vocabulary, kFixedTokens)
        .hinted("set `tokenizer.vocabulary` to 512 or more");
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
      {"minloglevel", "3"},  // it would print
  };
  Sentences sentences(documents);
  if (sentences.done()) return cannot_train(options, "there is no text");
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &sentences, &model);
  if (!status.ok()) return cannot_train(options, status.message());
  Tokenizer tokenizer = TRY(load(std::move(model)));
  if (tokenizer.vocabulary() != options.vocabulary) {
    return cannot_train(options, fmt::format("only {} tokens come of it", tokenizer.vocabulary()));
  }
  return tokenizer;
}

}  // namespace systole
