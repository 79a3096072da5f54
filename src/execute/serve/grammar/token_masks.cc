#include "execute/serve/grammar/token_masks.h"

#include <algorithm>
#include <numeric>

namespace systole::grammar {

TokenTrie::TokenTrie(std::vector<std::string> spellings) : spellings_(std::move(spellings)) {
  sorted_.resize(spellings_.size());
  std::iota(sorted_.begin(), sorted_.end(), 0);
  std::erase_if(sorted_, [&](std::int32_t token) { return bytes_of(token).empty(); });
  std::ranges::stable_sort(sorted_, {}, [&](std::int32_t token) { return bytes_of(token); });
  nodes_.push_back({});
  std::vector<std::int32_t> path{0};  // the node of each beginning of the text before
  const auto leave = [&](std::size_t depth) {
    for (; path.size() > depth + 1; path.pop_back())
      nodes_[static_cast<std::size_t>(path.back())].behind = static_cast<std::int32_t>(nodes_.size());
  };
  std::string_view before;
  for (std::size_t i = 0; i < sorted_.size(); ++i) {
    const std::string_view text = bytes_of(sorted_[i]);
    const auto parts = std::ranges::mismatch(before, text);
    leave(static_cast<std::size_t>(parts.in1 - before.begin()));
    while (path.size() <= text.size()) {
      const auto depth = static_cast<std::int32_t>(path.size());
      path.push_back(static_cast<std::int32_t>(nodes_.size()));
      const auto at = static_cast<std::int32_t>(i);
      nodes_.push_back({0, at, at, depth, static_cast<std::uint8_t>(text[path.size() - 2])});
    }
    nodes_[static_cast<std::size_t>(path.back())].last = static_cast<std::int32_t>(i) + 1;
    before = text;
  }
  leave(0);
  nodes_[0].behind = static_cast<std::int32_t>(nodes_.size());
}

std::string_view TokenTrie::bytes_of(std::int32_t token) const {
  if (token < 0 || static_cast<std::size_t>(token) >= spellings_.size()) return {};
  return spellings_[static_cast<std::size_t>(token)];
}

TokenMasks::TokenMasks(Grammar grammar, std::shared_ptr<const TokenTrie> trie)
    : grammar_(std::move(grammar)), trie_(std::move(trie)), reader_(grammar_.automaton()) {}

void TokenMasks::mark(std::int32_t node, std::span<std::uint64_t> mask) const {
  const TokenTrie::Node& at = trie_->nodes_[static_cast<std::size_t>(node)];
  for (std::int32_t i = at.first; i < at.last; ++i) {
    const auto token = static_cast<std::size_t>(trie_->sorted_[static_cast<std::size_t>(i)]);
    if (token / 64 < mask.size()) mask[token / 64] |= std::uint64_t{1} << (token % 64);
  }
}

// Reads what is under the node `from`, for the set all[begin, its end). With `ends`, nodes at which the stack is empty
// and its rule ends are put there; otherwise the text ends with them, and so may a token.
bool TokenMasks::walk(std::int32_t from, std::size_t begin, std::span<std::uint64_t> mask,
                      std::vector<std::int32_t>* ends) {
  const std::vector<TokenTrie::Node>& nodes = trie_->nodes_;
  const TokenTrie::Node& root = nodes[static_cast<std::size_t>(from)];
  begins_.assign({begin, reader_.all.size()});
  for (std::int32_t i = from + 1; i < root.behind;) {
    if (is_exhausted()) return false;
    const TokenTrie::Node& node = nodes[static_cast<std::size_t>(i)];
    const auto depth = static_cast<std::size_t>(node.depth - root.depth);  // from 1
    begins_.resize(depth + 1);
    reader_.all.resize(begins_[depth]);
    reader_.step(begins_[depth - 1], begins_[depth], node.byte);
    begins_.push_back(reader_.all.size());
    const bool goes_on = begins_[depth + 1] > begins_[depth];
    if (goes_on || (reader_.ended && ends == nullptr)) mark(i, mask);
    if (reader_.ended && ends != nullptr) ends->push_back(i);
    i = goes_on ? i + 1 : node.behind;
  }
  reader_.all.resize(begins_[1]);
  return true;
}

const TokenMasks::Kept* TokenMasks::kept(std::int32_t state) {
  const auto found = kept_.find(state);
  if (found != kept_.end()) return &found->second;
  if (kept_.size() >= kMostKept) kept_.clear();
  reader_.clear();
  reader_.all.push_back({state, 0});
  Kept made;
  made.mask.resize((trie_->vocabulary() + 63) / 64);
  if (!walk(0, 0, made.mask, &made.ends)) return nullptr;
  made.deepest = reader_.deepest;
  return &kept_.try_emplace(state, std::move(made)).first->second;
}

bool TokenMasks::fill(const GrammarState& state, std::span<std::uint64_t> mask) {
  std::ranges::fill(mask, 0);
  work_until_ = reader_.work + kMostWork;
  for (const GrammarState::Configuration& each : state.configurations()) {
    const Kept* known = kept(each.state);
    if (known == nullptr) return false;
    const auto depth = static_cast<std::int32_t>(each.stack.size());
    reader_.clear();
    if (depth + known->deepest > kMostDepth) {  // some of its calls would not be made
      std::int32_t stack = 0;
      for (const std::int32_t top : each.stack) stack = reader_.pushed(stack, top);
      reader_.all.push_back({each.state, stack});
      if (!walk(0, 0, mask, nullptr)) return false;
      continue;
    }
    for (std::size_t i = 0; i < std::min(mask.size(), known->mask.size()); ++i) mask[i] |= known->mask[i];
    if (known->ends.empty()) continue;
    if (each.stack.empty()) {
      for (const std::int32_t node : known->ends) mark(node, mask);
      continue;
    }
    std::int32_t below = 0;
    for (std::size_t i = 0; i + 1 < each.stack.size(); ++i) below = reader_.pushed(below, each.stack[i]);
    reader_.enter(each.stack.back(), below);
    const bool may_end = reader_.ended;
    if (reader_.all.empty() && !may_end) continue;
    for (const std::int32_t node : known->ends) {
      mark(node, mask);
      if (!reader_.all.empty() && !walk(node, 0, mask, nullptr)) return false;
    }
  }
  return true;
}

}  // namespace systole::grammar
