#pragma once
// Pooling: how the last hidden states of a text's tokens become the text's one vector.

#include <cstdint>
#include <optional>
#include <string_view>

namespace systole {

enum class Pooling : std::uint8_t {
  mean,  // the mean over all tokens, special ones included
  last,  // the state of the last token
  cls,   // the state of the first token: [CLS] of a bert
};
const char* name_of(Pooling pooling);
// Nothing: no pooling has that name.
std::optional<Pooling> pooling_named(std::string_view name);

struct PoolingSpec {
  Pooling pooling = Pooling::mean;
  bool normalize = true;  // vectors have length 1
};

}  // namespace systole
