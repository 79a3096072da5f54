#pragma once
// A time as others write it: RFC 3339, of which base/clock.h writes one form.

#include <chrono>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

// "2025-06-30T23:59:59Z"; also with a fraction of up to nine digits, and "+01:00" for Z. Errors: invalid.
Result<std::chrono::system_clock::time_point> from_iso8601(std::string_view text);

}  // namespace systole
