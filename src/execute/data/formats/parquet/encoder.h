#pragma once
// Values as bytes of a page, one function per encoding: the other direction of decoder.h, and its slow and obvious twin
// in tests.

#include <span>
#include <string>

#include "execute/data/formats/parquet/metadata.h"
#include "execute/data/formats/parquet/value.h"

namespace systole::parquet {

// Runs of numbers of `width` bits (bits.h).
std::string encode_runs(std::span<const std::uint32_t> numbers, int width);

// Whether the writer can write values of this type so.
bool is_writable(Physical type, Encoding encoding);

// Values that are not null. REQUIRES: is_writable, and not a dictionary's encoding.
std::string encode(const Column& column, Encoding encoding, std::span<const Value> values);

}  // namespace systole::parquet
