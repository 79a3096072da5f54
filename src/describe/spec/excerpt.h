#pragma once
// The line of source that an error speaks of, with carets under the place:
//
//     3 | modle: { family: gpt }
//       | ^^^^^

#include <string>
#include <string_view>

#include "ground/base/error.h"

namespace systole {

// "" when `where` is not a place in `source`. A long line is cut around the place. Ends without a newline.
std::string excerpt(std::string_view source, const Where& where);

// The error, its message followed by its excerpt, and so for its `others`, where their file is `filename`.
Error with_excerpts(Error error, std::string_view source, std::string_view filename);

}  // namespace systole
