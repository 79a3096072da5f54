// Any bytes as a tokenizer.json or a bundle of tokenizer files. One that loads must give back every text.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "execute/data/tokenizer.h"

using namespace systole;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = Tokenizer::load("{" + bytes);
  if (!tokenizer) return 0;
  std::vector<std::int32_t> tokens;
  Encoder(*tokenizer).encode(bytes, tokens);
  if (tokenizer->decode(tokens).value() != bytes) std::abort();
  return 0;
}
