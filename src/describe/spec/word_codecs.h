#pragma once
// Codecs of texts that a target receives: words of few characters, and maps with rules for their names.

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "describe/spec/codec.h"

namespace systole {

// Text that `is_valid` accepts; otherwise the error says that it is no `expected`, with the hint.
Codec valid_text_codec(Field<std::string> at, const char* expected, std::function<bool(const std::string&)> is_valid,
                       std::string hint);
// Text of ASCII letters, digits and `beside_letters`, not starting with '-'.
Codec word_codec(Field<std::string> at, std::string_view beside_letters, const char* expected);
// A map of texts. `wrong` returns what is wrong with a name, or "".
Codec named_texts_codec(Field<std::map<std::string, std::string>> at, std::string (*wrong)(const std::string&),
                        const char* hint);

}  // namespace systole
