#pragma once
// The pages of docs/reference about targets: an index that sets them beside each other, and a page for each with its
// commands, what it can do and its keys.

#include <vector>

#include "operate/cli/reference_pages.h"

namespace systole::cli {

std::vector<ReferencePage> target_pages();

}  // namespace systole::cli
