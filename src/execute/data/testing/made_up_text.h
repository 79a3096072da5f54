#pragma once
// Text for tests: sentences of made-up words, reproducible from a seed.

#include <string>
#include <vector>

#include "ground/base/philox.h"

namespace systole {

inline std::string made_up_sentence(PhiloxStream& random) {
  static constexpr const char* kSyllables[] = {"ba", "do", "ki",  "lu", "men", "nor", "pa",
                                               "ri", "so", "tan", "ve", "wil", "é"};
  std::string text;
  for (std::uint64_t words = 3 + random.below(12); words > 0; --words) {
    // The product of two draws makes some words frequent, as in real text.
    std::uint64_t word = random.below(40) * random.below(40);
    if (!text.empty()) text += ' ';
    do {
      text += kSyllables[word % 13];
      word /= 13;
    } while (word > 0);
  }
  return text + ".";
}

inline std::vector<std::string> made_up_documents(std::size_t count, std::uint64_t seed = 1) {
  PhiloxStream random(seed);
  std::vector<std::string> documents;
  for (std::size_t i = 0; i < count; ++i) documents.push_back(made_up_sentence(random));
  return documents;
}

}  // namespace systole
