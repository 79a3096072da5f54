#include "execute/data/byte_level_bpe.h"

#include <algorithm>
#include <bitset>
#include <map>

#include "execute/data/byte_alphabet.h"
#include "execute/data/utf8.h"
#include "execute/data/word_cache.h"
#include "ground/base/utf8.h"

namespace systole {
namespace {

constexpr std::int32_t kLargestToken = 10'000'000;
constexpr std::int32_t kNoToken = -1;  // of a byte that no text of the model's training had

std::size_t index_of(char byte) { return static_cast<unsigned char>(byte); }

class BytePairEncoder : public ModelEncoder {
 public:
  explicit BytePairEncoder(const BytePairModel& model) : model_(model) {
    for (const SplitPattern& pattern : model.patterns) matchers_.emplace_back(pattern);
    for (const BytePairModel::Added& added : model.added) begins_added_.set(index_of(added.text[0]));
  }

  void encode(std::string_view text, std::vector<std::int32_t>& tokens) override {
    std::size_t from = 0;
    for (std::size_t at = 0; begins_added_.any() && at < text.size();) {
      const BytePairModel::Added* added = begins_added_[index_of(text[at])] ? added_at(text.substr(at)) : nullptr;
      if (added == nullptr) {
        ++at;
        continue;
      }
      encode_stretch(text.substr(from, at - from), tokens);
      tokens.push_back(added->token);
      from = at += added->text.size();
    }
    encode_stretch(text.substr(from), tokens);
  }

 private:
  const BytePairModel::Added* added_at(std::string_view text) const {
    for (const BytePairModel::Added& added : model_.added) {
      if (text.starts_with(added.text)) return &added;
    }
    return nullptr;
  }

  // Patterns need UTF-8; each ill-formed part is encoded alone.
  void encode_stretch(std::string_view text, std::vector<std::int32_t>& tokens) {
    while (!text.empty()) {
      const std::size_t good = find_invalid_utf8(text).value_or(text.size());
      split(text.substr(0, good), 0, tokens);
      text.remove_prefix(good);
      if (text.empty()) return;
      const std::size_t bad = utf8_step(text).length;
      for (const char byte : text.substr(0, bad)) put_byte(byte, tokens);
      text.remove_prefix(bad);
    }
  }

  // Applies the patterns from index `pattern` on: each splits what the previous one left.
  void split(std::string_view text, std::size_t pattern, std::vector<std::int32_t>& tokens) {
    if (text.empty()) return;
    if (pattern == matchers_.size()) return encode_word(text, tokens);
    for (std::size_t at = 0; at < text.size();) {
      const TextSpan match = matchers_[pattern].next(text, at);
      split(text.substr(at, match.begin - at), pattern + 1, tokens);
      split(text.substr(match.begin, match.end - match.begin), pattern + 1, tokens);
      at = match.end;
    }
  }

  void encode_word(std::string_view word, std::vector<std::int32_t>& tokens) {
    if (word.size() == 1) return put_byte(word[0], tokens);
    if (known_.find(word, tokens)) return;
    word_.clear();
    const auto whole = model_.ignore_merges ? model_.whole.find(word) : model_.whole.end();
    if (whole != model_.whole.end()) {
      word_.push_back(whole->second);
    } else {
      for (const char byte : word) put_byte(byte, word_);
      model_.merges.apply(word_);
    }
    if (word_.empty()) return;
    tokens.insert(tokens.end(), word_.begin(), word_.end());
    known_.keep(word, word_);
  }

  void put_byte(char byte, std::vector<std::int32_t>& tokens) const {
    const std::int32_t token = model_.byte_tokens[index_of(byte)];
    if (token != kNoToken) tokens.push_back(token);
  }

  const BytePairModel& model_;
  std::vector<SplitPattern::Matcher> matchers_;
  std::bitset<256> begins_added_;
  WordCache known_;
  std::vector<std::int32_t> word_;
};

Error damaged(std::string why) {
  return error(ErrorKind::corrupt, "this tokenizer is damaged: {}", why).hinted("copy its files again");
}

Result<std::vector<Merge>> merges_of(const BytePairParts& parts) {
  std::vector<Merge> merges;
  merges.reserve(parts.merges.size());
  std::string both;
  for (const auto& [left, right] : parts.merges) {
    both.assign(left).append(right);
    Merge merge;
    for (const auto& [name, token] : {std::pair(&left, &merge.left), std::pair(&right, &merge.right),
                                      std::pair(&std::as_const(both), &merge.result)}) {
      const auto found = parts.vocabulary.find(*name);
      if (found == parts.vocabulary.end())
        return damaged(
            fmt::format("merge {} is '{}' and '{}', and '{}' is no token", merges.size(), left, right, *name));
      *token = found->second;
    }
    merges.push_back(merge);
  }
  return merges;
}

Result<std::size_t> count_tokens(const BytePairParts& parts) {
  std::int32_t last = -1;
  const auto see = [&last](std::int32_t token) {
    last = std::max(last, token);
    return token >= 0 && token <= kLargestToken;
  };
  bool good = true;
  for (const auto& [text, token] : parts.vocabulary) good = see(token) && good;
  for (const BytePairParts::Added& added : parts.added) good = see(added.token) && good;
  if (!good) return damaged(fmt::format("a token's number is not between 0 and {}", kLargestToken));
  return static_cast<std::size_t>(last) + 1;
}

// The bytes that each token spells. Special tokens and unused ids spell nothing.
Status find_spellings(const BytePairParts& parts, EveryByte every_byte, BytePairModel& model) {
  model.spellings.resize(TRY(count_tokens(parts)));
  std::vector<bool> taken(model.spellings.size());
  for (const auto& [text, token] : parts.vocabulary) {
    const auto place = static_cast<std::size_t>(token);
    if (taken[place]) return damaged(fmt::format("two tokens have the number {}", token));
    taken[place] = true;
    model.spellings[place] = spelled_by(text).value_or(text);
  }
  for (const BytePairParts::Added& added : parts.added) {
    const auto place = static_cast<std::size_t>(added.token);
    std::string& spelling = model.spellings[place];
    if (taken[place] && !added.special && spelling != added.text) {
      return damaged(
          fmt::format("the added token '{}' has the number {}, which another token has", added.text, added.token));
    }
    taken[place] = true;
    spelling = added.special ? std::string() : added.text;
  }
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = parts.vocabulary.find(letter_of(static_cast<unsigned char>(byte)));
    std::int32_t& token = model.byte_tokens[static_cast<std::size_t>(byte)];
    token = found == parts.vocabulary.end() ? kNoToken : found->second;
    if (token != kNoToken) continue;
    model.keeps_text = false;
    if (every_byte == EveryByte::needed) {
      return error(ErrorKind::unsupported,
                   "this tokenizer cannot keep every byte of a text: it has no token for byte 0x{:02X}", byte)
          .hinted("use a byte-level tokenizer whose vocabulary holds all 256 bytes");
    }
  }
  return {};
}

std::int32_t token_named(const BytePairParts& parts, std::string_view name) {
  for (const BytePairParts::Added& added : parts.added) {
    if (added.text == name) return added.token;
  }
  const auto found = parts.vocabulary.find(std::string(name));
  return found == parts.vocabulary.end() ? -1 : found->second;
}

std::int32_t first_named(const BytePairParts& parts, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const std::int32_t token = token_named(parts, name); token >= 0) return token;
  }
  return -1;
}

// Checks that a post-processor's marks are tokens.
Status check_marks(const BytePairParts& parts, const BytePairModel& model) {
  for (const auto* marks : {&parts.before, &parts.after}) {
    for (const std::int32_t token : *marks) {
      if (token < 0 || static_cast<std::size_t>(token) >= model.spellings.size())
        return damaged("its post-processor puts a token that is not there");
    }
  }
  return {};
}

// Finds bos and eos: named in the files, else the mark before a text (for bos), else by the usual names.
// REQUIRES: check_marks.
Status find_ends(const BytePairParts& parts, BytePairModel& model) {
  for (const auto& [name, what] : {std::pair(&parts.bos, "bos_token"), std::pair(&parts.eos, "eos_token")}) {
    if (!name->empty() && token_named(parts, *name) < 0)
      return damaged(fmt::format("its {} is '{}', which is no token", what, *name));
  }
  model.eos = parts.eos.empty()
                  ? first_named(parts, {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>"})
                  : token_named(parts, parts.eos);
  if (model.eos < 0) {
    return error(ErrorKind::unsupported, "nothing says which token of this tokenizer ends a document")
        .hinted(R"(put a tokenizer_config.json beside it with {"eos_token": "..."})");
  }
  model.bos = !parts.bos.empty()      ? token_named(parts, parts.bos)
              : !parts.before.empty() ? parts.before.front()
                                      : first_named(parts, {"<|begin_of_text|>", "<s>", "<bos>"});
  if (model.bos < 0) model.bos = model.eos;
  model.spellings[static_cast<std::size_t>(model.bos)].clear();
  model.spellings[static_cast<std::size_t>(model.eos)].clear();
  return {};
}

// Otherwise text could be encoded to a token that spells nothing.
Status check_special(const BytePairModel& model, std::span<const Merge> merges) {
  const auto silent = [&](std::int32_t token) { return model.spellings[static_cast<std::size_t>(token)].empty(); };
  for (const Merge& merge : merges) {
    if (silent(merge.result)) return damaged(fmt::format("its merges make the special token {}", merge.result));
  }
  for (const std::int32_t token : model.byte_tokens) {
    if (token != kNoToken && silent(token)) return damaged(fmt::format("its special token {} is a byte", token));
  }
  return {};
}

void find_added(const BytePairParts& parts, BytePairModel& model) {
  for (const BytePairParts::Added& added : parts.added) {
    const bool spells = !model.spellings[static_cast<std::size_t>(added.token)].empty();
    if (spells && !added.special && !added.text.empty()) model.added.push_back({added.text, added.token});
  }
  std::stable_sort(model.added.begin(), model.added.end(),
                   [](const auto& a, const auto& b) { return a.text.size() > b.text.size(); });
}

// REQUIRES: find_ends.
void find_specials(const BytePairParts& parts, BytePairModel& model) {
  std::map<std::string, std::int32_t> named;
  for (const BytePairParts::Added& added : parts.added) {
    const bool spells = !model.spellings[static_cast<std::size_t>(added.token)].empty();
    if (!spells && !added.text.empty()) named.emplace(added.text, added.token);
  }
  for (const std::string& name : {parts.bos, parts.eos}) {
    if (!name.empty()) named.emplace(name, token_named(parts, name));
  }
  for (const auto& [name, token] : named) model.specials.push_back({name, token});
}

void find_whole_words(const BytePairParts& parts, BytePairModel& model) {
  for (const auto& [text, token] : parts.vocabulary) {
    const std::string& bytes = model.spellings[static_cast<std::size_t>(token)];
    if (!bytes.empty() && spelled_by(text).has_value()) model.whole.emplace(bytes, token);
  }
}

}  // namespace

std::unique_ptr<ModelEncoder> BytePairModel::encoder() const { return std::make_unique<BytePairEncoder>(*this); }

Bytes BytePairModel::resident() const {
  constexpr std::size_t kPerEntry = 64;  // bytes of an entry in `whole`: node, pointer and malloc overhead
  std::size_t bytes = serialised.capacity() + spellings.capacity() * sizeof(std::string) + whole.size() * kPerEntry;
  for (const std::string& one : spellings) bytes += one.capacity() < sizeof(std::string) / 2 ? 0 : one.capacity() + 16;
  return Bytes(static_cast<std::int64_t>(bytes)) + merges.resident();
}

Result<std::shared_ptr<TokenizerModel>> load_byte_level_bpe(std::string_view serialised, EveryByte every_byte) {
  BytePairParts parts = TRY(read_byte_pair_parts(serialised));
  const std::vector<Merge> merges = TRY(merges_of(parts));
  auto model = std::make_shared<BytePairModel>(MergeTable(merges));
  model->family = TokenizerFamily::byte_level_bpe;
  TRY(find_spellings(parts, every_byte, *model));
  TRY(check_marks(parts, *model));
  TRY(find_ends(parts, *model));
  TRY(check_special(*model, merges));
  find_added(parts, *model);
  find_specials(parts, *model);
  model->patterns = std::move(parts.patterns);
  model->ignore_merges = parts.ignore_merges;
  model->before = std::move(parts.before), model->after = std::move(parts.after);
  if (model->before.empty() && parts.puts_bos) model->before = {model->bos};
  if (model->after.empty() && parts.puts_eos) model->after = {model->eos};
  if (parts.ignore_merges) find_whole_words(parts, *model);
  return std::shared_ptr<TokenizerModel>(std::move(model));
}

}  // namespace systole
