#pragma once
// Base64 (RFC 4648, §4): bytes as ASCII letters.

#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

std::string to_base64(std::string_view bytes);
// Ignores spaces and line ends. Errors: invalid (the message does not repeat the text).
Result<std::string> from_base64(std::string_view text);

}  // namespace systole
