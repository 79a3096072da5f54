#pragma once
// The source line of an error, with carets under the place:
//
//     3 | modle: { family: gpt }
//       | ^^^^^

#include <string>
#include <string_view>

#include "ground/base/error.h"

namespace systole {

// "" when `where` is not a place in `source`. A long line is clipped around the place. No newline at the end.
std::string excerpt(std::string_view source, const Where& where);

// Appends to the message of the error, and of each of its `others`, the excerpt of its place if that is in `filename`.
Error with_excerpts(Error error, std::string_view source, std::string_view filename);

}  // namespace systole
