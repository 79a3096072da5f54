#pragma once
// What is told of a pattern that matches nothing.

#include <string>

namespace systole {

// What to try where `pattern` has brackets, after a hint; else empty.
std::string brackets_hint(const std::string& pattern);

}  // namespace systole
