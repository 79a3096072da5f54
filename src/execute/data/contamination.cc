#include "execute/data/contamination.h"

#include <algorithm>
#include <functional>
#include <string>

#include "ground/base/hash.h"

namespace systole {
namespace {

using Ngram = std::function<void(std::uint64_t hash)>;

bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         static_cast<unsigned char>(c) > 127;
}

// Calls `each` for every N-gram of a text.
void each_ngram(std::string text, std::size_t count, const Ngram& each) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  std::vector<std::uint64_t> words;
  for (std::size_t at = 0; at < text.size();) {
    if (!in_word(text[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < text.size() && in_word(text[at])) ++at;
    words.push_back(hash64(std::string_view(text).substr(begin, at - begin)));
    if (words.size() < count) continue;
    each(hash64(std::as_bytes(std::span(words).last(count))));
  }
}

// Calls `take` with the text of every document of a split.
Status each_document(Store& store, const TokensManifest& dataset, const SplitTokens& split, const Tokenizer& tokenizer,
                     const std::function<void(std::string text)>& take) {
  std::vector<std::byte> scratch(kTokenBlockBytes);
  std::vector<std::int32_t> tokens;
  for (const ShardInfo& info : split.shards) {
    const TokenShard shard = TRY(TokenShard::open(store, dataset.key + "/" + info.path));
    for (std::int64_t i = 0; i < shard.info().documents; ++i) {
      const std::int64_t begin = shard.document_begin(i);
      tokens.resize(static_cast<std::size_t>(shard.document_end(i) - begin));
      TRY(shard.read(begin, tokens, scratch));
      take(TRY(tokenizer.decode(tokens)));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<Contamination>> find_contamination(Store& store, std::span<const TokensManifest> datasets,
                                                      const Tokenizer& tokenizer, std::int64_t words) {
  CHECK(words >= 1, "runs of {} words", words);
  const auto count = static_cast<std::size_t>(words);
  std::vector<std::uint64_t> held;  // sorted, each once
  for (const TokensManifest& dataset : datasets)
    TRY(each_document(store, dataset, dataset.held_out, tokenizer, [&](std::string text) {
      each_ngram(std::move(text), count, [&held](std::uint64_t hash) { held.push_back(hash); });
    }));
  std::ranges::sort(held);
  held.erase(std::unique(held.begin(), held.end()), held.end());
  std::vector<bool> in_training(held.size());
  const auto place = [&held](std::uint64_t hash) {
    return static_cast<std::size_t>(std::ranges::lower_bound(held, hash) - held.begin());
  };
  for (const TokensManifest& dataset : datasets)
    TRY(each_document(store, dataset, dataset.train, tokenizer, [&](std::string text) {
      each_ngram(std::move(text), count, [&](std::uint64_t hash) {
        if (const std::size_t at = place(hash); at < held.size() && held[at] == hash) in_training[at] = true;
      });
    }));
  std::vector<Contamination> result;
  for (const TokensManifest& dataset : datasets) {
    Contamination& one = result.emplace_back();
    TRY(each_document(store, dataset, dataset.held_out, tokenizer, [&](std::string text) {
      std::int64_t ngrams = 0, found = 0;
      each_ngram(std::move(text), count, [&](std::uint64_t hash) {
        ++ngrams;
        found += in_training[place(hash)] ? 1 : 0;
      });
      one.documents += ngrams > 0 ? 1 : 0;
      one.touched += found > 0 ? 1 : 0;
      one.ngrams += ngrams;
      one.found += found;
    }));
  }
  return result;
}

}  // namespace systole
