#pragma once
// Parses times in RFC 3339; base/clock.h writes one form of it.

#include <chrono>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

// "2025-06-30T23:59:59Z"; also with a fraction of up to nine digits, and "+01:00" for Z. Errors: invalid.
Result<std::chrono::system_clock::time_point> from_iso8601(std::string_view text);

}  // namespace systole
