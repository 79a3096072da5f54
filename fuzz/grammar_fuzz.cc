// Any bytes as a grammar, a JSON Schema or else a regular expression: refused, or it reads a text as its masks say. The
// first byte says which tokens are taken.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "execute/serve/grammar/token_masks.h"

using namespace systole;

namespace {

std::shared_ptr<const grammar::TokenTrie> trie() {
  static const auto made = [] {
    std::vector<std::string> spellings{"", "{\"", "\": ", "\"}", "}]", "\", \"", "true", "ab", "12", "\xC3\xA9"};
    for (int byte = 0; byte < 256; ++byte) spellings.emplace_back(1, static_cast<char>(byte));
    return std::make_shared<const grammar::TokenTrie>(std::move(spellings));
  }();
  return made;
}

bool is_set(const std::vector<std::uint64_t>& mask, std::size_t token) {
  return (mask[token / 64] >> (token % 64) & 1) != 0;
}

Result<grammar::Grammar> grammar_of(std::string_view text) {
  const Result<Node> schema = parse_json(text, "schema", {.depth = 64});
  return schema.ok() ? grammar::Grammar::of_schema(*schema) : grammar::Grammar::of_regex(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto made = grammar_of({reinterpret_cast<const char*>(data) + 1, size - 1});
  if (!made.ok()) {
    if (made.error().message.empty()) std::abort();
    return 0;
  }
  grammar::TokenMasks masks(*made, trie());
  grammar::GrammarState state(*made);
  std::vector<std::uint64_t> mask((trie()->vocabulary() + 63) / 64);
  std::size_t next = data[0];
  for (int step = 0; step < 20 && !state.must_end(); ++step) {
    if (!masks.fill(state, mask)) return 0;
    std::size_t taken = 0;
    for (std::size_t token = 0; token < trie()->vocabulary(); ++token) {
      grammar::GrammarState tried = state;
      const std::string_view bytes = trie()->bytes_of(static_cast<std::int32_t>(token));
      const bool reads = !bytes.empty() && tried.advance(bytes);
      // Where many readings are possible at once, some are given up, and not the same ones.
      const bool few = state.configurations().size() < grammar::kMostConfigurations / 4;
      if (few && reads != is_set(mask, token)) std::abort();
      if (reads && (taken == 0 || next % (token + 1) == 0)) taken = token;
    }
    if (taken == 0) break;
    if (!state.advance(trie()->bytes_of(static_cast<std::int32_t>(taken)))) std::abort();
    next = next * 31 + 7;
  }
  return 0;
}
