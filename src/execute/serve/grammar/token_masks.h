#pragma once
// Which tokens may come next: for a state of a grammar a bit for each token of a vocabulary.
//
// The vocabulary is a trie, so that tokens with the same beginning are tried together. Most of a mask depends on the
// configuration's own state alone, not on its stack: that part is kept, with the places in the trie where a token comes
// to the end of the state's rule. Only what follows those places is tried with the stack at hand. (The division of
// XGrammar, Dong et al., arXiv:2411.15100.)

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "execute/serve/grammar/grammar.h"

namespace systole::grammar {

// The spellings of a vocabulary's tokens. Immutable.
class TokenTrie {
 public:
  // By token. Those with an empty spelling are in no mask.
  explicit TokenTrie(std::vector<std::string> spellings);

  std::size_t vocabulary() const { return spellings_.size(); }
  // Empty outside the vocabulary.
  std::string_view bytes_of(std::int32_t token) const;

 private:
  friend class TokenMasks;
  struct Node {
    std::int32_t behind = 0;           // the first node that is not under it: nodes are in the order of their texts
    std::int32_t first = 0, last = 0;  // its tokens: sorted_[first, last)
    std::int32_t depth = 0;
    std::uint8_t byte = 0;
  };
  std::vector<std::string> spellings_;
  std::vector<std::int32_t> sorted_;  // tokens
  std::vector<Node> nodes_;           // the first is the root
};

// The masks of a grammar, for all sequences that conform to it. One thread at a time.
class TokenMasks {
 public:
  TokenMasks(Grammar grammar, std::shared_ptr<const TokenTrie> trie);

  // Sets `mask`, a bit per token from the lowest of each word on, to the tokens that may come next. False: it took more
  // than kMostWork, and the mask is not whole. REQUIRES: the state is of this grammar.
  bool fill(const GrammarState& state, std::span<std::uint64_t> mask);

  const Grammar& grammar() const { return grammar_; }
  const TokenTrie& trie() const { return *trie_; }
  std::int64_t work() const { return reader_.work; }  // of all fills: configurations looked at

  static constexpr std::size_t kMostKept = 256;  // states; each has a bit per token
  static constexpr std::int64_t kMostWork = std::int64_t{1} << 25;

 private:
  struct Kept {
    std::vector<std::uint64_t> mask;  // of tokens that end within the rule
    std::vector<std::int32_t> ends;   // nodes at which the rule ends
    std::int32_t deepest = 0;         // stack above the rule's
  };
  const Kept* kept(std::int32_t state);
  bool walk(std::int32_t from, std::size_t begin, std::span<std::uint64_t> mask, std::vector<std::int32_t>* ends);
  void mark(std::int32_t node, std::span<std::uint64_t> mask) const;
  bool is_exhausted() const { return reader_.work > work_until_; }

  Grammar grammar_;
  std::shared_ptr<const TokenTrie> trie_;
  ByteReader reader_;
  std::int64_t work_until_ = 0;
  std::map<std::int32_t, Kept> kept_;
  std::vector<std::size_t> begins_;  // of walk(): the set of each depth
};

}  // namespace systole::grammar
