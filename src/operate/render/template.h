#pragma once
// Manifest templates: YAML with holes. The text is parsed first and the tree is filled, so no value can change the
// structure around it.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ground/base/document.h"
#include "ground/catalog/dated.h"

namespace systole {

// A hole is a whole scalar, `$name`. Null removes the entry or item with the hole, and then an empty map or list around
// it. REQUIRES: a value for each hole and a hole for each value; the text is YAML. Values keep their positions.
Node fill(std::string_view yaml, std::vector<std::pair<std::string, Node>> holes);

// A scalar with its source as a trailing comment: "nccl.csv, 2026-08: SOURCE".
Node from_catalog(Node scalar, std::string_view table, const Dated& dated);

// Replaces the first occurrence of `what`. REQUIRES: it occurs.
std::string replaced(std::string text, std::string_view what, std::string_view by);

}  // namespace systole
