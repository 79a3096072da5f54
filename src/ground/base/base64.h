#pragma once
// Base64 (RFC 4648, §4): bytes as letters that any text may hold.

#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

std::string to_base64(std::string_view bytes);
// Spaces and line ends between are passed over. Errors: invalid (the text is not repeated in the message).
Result<std::string> from_base64(std::string_view text);

}  // namespace systole
