#include "execute/data/byte_alphabet.h"

#include <array>

#include "ground/base/utf8.h"

namespace systole {
namespace {

constexpr int kLetters = 0x144;  // code points up to the last one used

struct Alphabet {
  std::array<int, 256> code_point{};
  std::array<int, kLetters> byte{};  // -1: no letter
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (int& byte : alphabet.byte) byte = -1;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool itself = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    const int code_point = itself ? byte : next++;
    alphabet.code_point[static_cast<std::size_t>(byte)] = code_point;
    alphabet.byte[static_cast<std::size_t>(code_point)] = byte;
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string letter_of(unsigned char byte) {
  std::string letter;
  append_utf8(letter, static_cast<std::uint32_t>(kAlphabet.code_point[byte]));
  return letter;
}

std::optional<std::string> spelled_by(std::string_view letters) {
  std::string bytes;
  for (std::size_t at = 0; at < letters.size(); ++at) {
    int code_point = static_cast<unsigned char>(letters[at]);
    if (code_point >= 0x80) {  // every letter beyond ASCII takes two bytes
      if ((code_point & 0xE0) != 0xC0 || at + 1 == letters.size()) return std::nullopt;
      code_point = (code_point & 0x1F) << 6 | (static_cast<unsigned char>(letters[++at]) & 0x3F);
    }
    if (code_point >= kLetters) return std::nullopt;
    const int byte = kAlphabet.byte[static_cast<std::size_t>(code_point)];
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace systole
