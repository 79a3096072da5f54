#pragma once
// The distribution of lengths as a chart: text for a terminal, and SVG.

#include <span>
#include <string>

#include "describe/lengths/length_histogram.h"

namespace systole {

// A line for each range of lengths, with a bar as long as its share. Ranges grow with the length where lengths differ
// by more than 20 times. "" if there are none.
std::string length_drawing(const LengthHistogram& rows);

// The same as an SVG picture on a logarithmic axis, with a line at each edge of the buckets. `title`: above it.
std::string length_svg(const LengthHistogram& rows, std::span<const std::int64_t> edges, const std::string& title);

}  // namespace systole
