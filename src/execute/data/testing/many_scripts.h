#pragma once
// Text for tests: random mixtures of parts of the sentences in golden/scripts.txt with numbers, runs of spaces,
// contractions, emoji and any characters of Unicode, reproducible from a seed. Includes ill-formed UTF-8, as
// `data.train.invalid_utf8: replace` passes it on.

#include <string>
#include <vector>

#include "execute/data/utf8.h"
#include "ground/base/philox.h"
#include "ground/base/utf8.h"

namespace systole {

class ManyScripts {
 public:
  // `sentences`: the lines of golden/scripts.txt.
  ManyScripts(std::vector<std::string> sentences, std::uint64_t seed)
      : sentences_(std::move(sentences)), random_(seed) {}

  std::string document(std::size_t bytes) {
    std::string text;
    while (text.size() < bytes) append_piece(text);
    replace_ill_formed_parts(text);
    return text;
  }

 private:
  void append_piece(std::string& text) {
    static constexpr const char* kJoints[] = {" ",      "  ",     "   ",  "\n",       "\n\n",   "\r\n",
                                              "\t",     " \n ",   "",     "\xC2\xA0", "\u3000", "\u2028",
                                              "\u180e", "\u200b", "\x0b", "\x0c",     "\u0085", "\ufeff"};
    static constexpr const char* kWords[] = {"'s",
                                             "'S",
                                             "'t",
                                             "'RE",
                                             "'ve",
                                             "'m",
                                             "'LL",
                                             "'d",
                                             "’s",
                                             "can't",
                                             "I'm",
                                             "THEY'D",
                                             "<|endoftext|>",
                                             "</s>",
                                             "<tool>",
                                             "rights",
                                             "www.example.org/a?b=c",
                                             "\xFF\xFE",
                                             "\xE2\x82",
                                             "\xF0\x9F\x91",
                                             "\xC0\xAF"};
    const std::uint64_t kind = random_.below(16);
    if (kind < 8) {
      append_part(text);
    } else if (kind < 11) {
      for (std::uint64_t n = 1 + random_.below(3); n > 0; --n) text += kJoints[random_.below(std::size(kJoints))];
    } else if (kind == 11) {
      for (std::uint64_t n = random_.below(12); n > 0; --n) text += static_cast<char>('0' + random_.below(10));
    } else if (kind == 12) {
      text += kWords[random_.below(std::size(kWords))];
    } else if (kind == 13) {
      text.append(random_.below(40), " \t\n-=x"[random_.below(6)]);
    } else if (kind == 14) {
      for (std::uint64_t n = 1 + random_.below(4); n > 0; --n) append_any(text);
    } else {
      text += sentences_[random_.below(sentences_.size())] + "\n";
    }
  }

  // Some words of a sentence, cut at any byte: broken characters are intended.
  void append_part(std::string& text) {
    const std::string& sentence = sentences_[random_.below(sentences_.size())];
    std::size_t begin = random_.below(sentence.size()), end = begin + 1 + random_.below(40);
    if (random_.below(50) != 0) {
      while (begin > 0 && (sentence[begin] & 0xC0) == 0x80) --begin;
      while (end < sentence.size() && (sentence[end] & 0xC0) == 0x80) ++end;
    }
    text += sentence.substr(begin, end - begin);
  }

  void append_any(std::string& text) {
    static constexpr std::uint32_t kLimits[] = {0x80, 0x800, 0x3000, 0x10000, 0x20000, 0x110000};
    const auto code_point = static_cast<std::uint32_t>(random_.below(kLimits[random_.below(6)]));
    if (code_point < 0xD800 || code_point > 0xDFFF) append_utf8(text, code_point);
  }

  std::vector<std::string> sentences_;
  PhiloxStream random_;
};

}  // namespace systole
