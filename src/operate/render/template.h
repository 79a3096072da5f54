#pragma once
// Manifests that read like what they become: YAML with holes, parsed first and filled in the tree, so that no value can
// change the structure around it.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ground/base/document.h"
#include "ground/catalog/dated.h"

namespace systole {

// A hole is a whole scalar, `$name`. Null takes the entry or item away that holds it, and the map or list that has
// nothing left. REQUIRES: a value for each hole and a hole for each value; the text is YAML. Values keep their places.
Node fill(std::string_view yaml, std::vector<std::pair<std::string, Node>> holes);

// A scalar that says where it comes from, as a comment behind it: "nccl.csv, 2026-08: SOURCE".
Node from_catalog(Node scalar, std::string_view table, const Dated& dated);

// The first `what` of a text, which is there, in other words.
std::string replaced(std::string text, std::string_view what, std::string_view by);

}  // namespace systole
