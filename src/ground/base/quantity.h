#pragma once
// Parses numbers with units, as people write them in a workload or a flag. Units are exact: MB is 10^6 bytes, MiB is
// 2^20; M alone, mb or Mb are refused, with the valid names. '_' may separate digits, and one space may precede the
// unit. Errors: invalid (no number, unknown unit, negative, too large), with a hint.

#include <cstdint>
#include <string_view>

#include "ground/base/document.h"
#include "ground/base/units.h"

namespace systole {

Result<Bytes> parse_bytes(std::string_view text);         // "512MB", "1.5 GiB"; bare: bytes. Rounded down to a byte
Result<Seconds> parse_seconds(std::string_view text);     // "100s", "5min", "1h30min", "250ms"; only 0 may be bare
Result<std::int64_t> parse_count(std::string_view text);  // "15T", "1.5B", "2_000_000", "300k"; must be an integer

// The same for a number or text in a document; errors have its place.
Result<Bytes> as_bytes(const Node& node);
Result<Seconds> as_seconds(const Node& node);
Result<std::int64_t> as_count(const Node& node);

}  // namespace systole
