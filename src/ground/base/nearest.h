#pragma once
// The valid names nearest to a misspelled one, for hints.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace systole {

// Edit distance of `a` and `b`: the number of letters to insert, remove, replace or swap with their neighbor (optimal
// string alignment: Damerau's edits, no substring edited twice).
int edit_distance(std::string_view a, std::string_view b);

// At most `count` of `names` within a third of the length of the longer word (at least 1; case and '-' versus '_' are
// free), nearest first, ties in the given order. Excludes the name itself and names that share no letter with it.
std::vector<std::string> nearest(std::string_view name, std::span<const std::string> names, std::size_t count = 3);

// "did you mean 'model'?"; nothing if no name is near and none shares the prefix.
std::optional<std::string> meant_hint(std::string_view name, std::span<const std::string> names);

// "did you mean 'model'?", "did you mean 'mesh' or 'model'?". If none is near: the names that share at least two thirds
// of `name` as a prefix. If there are none of these either: "valid: a, b, c" (all if at most 12, else the first 12 and
// "..."); "" without names. Never suggests `name` itself, since it was just refused.
std::string nearest_hint(std::string_view name, std::span<const std::string> names);

}  // namespace systole
