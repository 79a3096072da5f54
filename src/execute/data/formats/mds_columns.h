#pragma once
// Internals of MDS (mds.h): its columns and the encodings of their values.

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

struct MdsColumn {
  std::string name, encoding;
  std::int64_t size = -1;  // of every value; negative: it differs and is stored with each
};

// The size of each value of an encoding, negative if it differs. Errors, without a place: unsupported (an encoding that is
// not known, or pickles).
Result<std::int64_t> size_of_mds(std::string_view encoding);
// A stored value as field() gives it: numbers as text into `scratch`, all else as it is.
// REQUIRES: the value has the encoding's size. Errors, without a place: unsupported (pickles).
Result<std::string_view> decode_mds(std::string_view encoding, std::string_view value, std::string& scratch);
// The other way. Errors, without a place: invalid (no such number).
Result<std::string_view> encode_mds(std::string_view encoding, std::string_view value, std::string& scratch);

}  // namespace systole
