#pragma once
// Hints for a file pattern that matches nothing.

#include <string>

namespace systole {

// A hint if `pattern` has brackets, to append to another hint; else empty.
std::string brackets_hint(const std::string& pattern);

}  // namespace systole
