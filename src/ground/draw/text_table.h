#pragma once
// Text tables, for terminals and files.

#include <string>
#include <vector>

#include "ground/draw/folded_text.h"

namespace systole {

// A header and rows with the same number of cells. A header that ends in '>' right-aligns its column (the '>' is not
// shown). Columns are separated by two spaces; lines have no trailing spaces. If the table is wider than `width`,
// columns that do not fit go below their row, each with its header: "    it lost because: slower".
std::string table(std::vector<std::string> headers, const std::vector<std::vector<std::string>>& rows,
                  int width = kUnfolded);

}  // namespace systole
