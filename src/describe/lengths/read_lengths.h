#pragma once
// A histogram of lengths from a small file.
//
//   text   a line for each length: "length,count", or "length" alone for one; commas, semicolons, tabs or spaces
//          between; a first line without numbers names the columns; empty lines and lines with # are passed over
//   JSON   {"20": 1000, "31": 5}  or  [[20, 1000], [31, 5]]  or  [20, 20, 31], or one of them as "lengths" of a map

#include <string>
#include <string_view>

#include "describe/lengths/length_histogram.h"
#include "ground/base/result.h"

namespace systole {

// A length that is named twice counts twice. JSON if the text begins with { or [. Errors: invalid, at its line: no
// length at all, one below 1 or above 2^32 - 1, a count below 0, more than 2^60 tokens together.
Result<LengthHistogram> read_lengths(std::string_view text, const std::string& filename);

}  // namespace systole
