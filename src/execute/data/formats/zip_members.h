#pragma once
// The members of a zip archive (PKWARE's APPNOTE 6.3: end record, its 64-bit form, central directory), decompressed in
// memory. Stored and deflated members; each one's CRC-32 is checked. A member that would become over 200 times as large
// as it is stored (above 64 MiB) is refused as a bomb; overlapping members, the other bomb, add up to the bound of all.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ground/base/result.h"

namespace systole {

// Names and bytes, in the directory's order. Errors, without a place: corrupt, unsupported, does_not_fit (above `limit`).
Result<std::vector<std::pair<std::string, std::string>>> unzip(std::string_view archive, std::int64_t limit);

}  // namespace systole
