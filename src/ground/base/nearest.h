#pragma once
// The valid names nearest to a misspelt one, for hints.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace systole {

// Letters to insert, remove, replace or swap with their neighbour to make `a` of `b` (optimal string alignment:
// Damerau's edits, no stretch edited twice).
int edit_distance(std::string_view a, std::string_view b);

// At most `count` of `names` within a third of the length of the longer word (at least 1, case and '-' versus '_'
// free of charge), nearest first, ties in the given order. Never the name itself, and none with which it shares no
// letter.
std::vector<std::string> nearest(std::string_view name, std::span<const std::string> names, std::size_t count = 3);

// "did you mean 'model'?", "did you mean 'mesh' or 'model'?"; with none near, those that begin as the name does, as far
// as two thirds of it; with none of these, "valid: a, b, c" (all of them when at most 12, else the first 12 and "...");
// "" without names. Never names `name` itself: who gets this hint was refused with it.
std::string nearest_hint(std::string_view name, std::span<const std::string> names);

}  // namespace systole
