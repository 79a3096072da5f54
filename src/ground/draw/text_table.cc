#include "ground/draw/text_table.h"

#include <algorithm>

namespace systole {
namespace {

// Selects the columns that fit side by side in `width`. If not all fit, wide prose columns are dropped first, then the
// last ones. The first column always stays.
std::vector<bool> side_by_side(const std::vector<std::size_t>& widths, std::size_t width) {
  std::vector<bool> beside(widths.size(), true);
  for (;;) {
    std::size_t total = 0, last = 0, widest = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (!beside[i]) continue;
      total += widths[i] + (i > 0 ? 2 : 0);
      last = i;
      if (i > 0 && (widest == 0 || widths[i] >= widths[widest])) widest = i;
    }
    if (total <= width || last == 0) return beside;
    beside[widths[widest] > width / 3 ? widest : last] = false;
  }
}

}  // namespace

std::string table(std::vector<std::string> headers, const std::vector<std::vector<std::string>>& rows, int width) {
  std::vector<bool> right;
  std::vector<std::size_t> widths;
  for (std::string& header : headers) {
    right.push_back(!header.empty() && header.back() == '>');
    if (right.back()) header.pop_back();
    widths.push_back(shown_width(header));
  }
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], shown_width(row[i]));
  const std::vector<bool> beside = side_by_side(widths, static_cast<std::size_t>(width));
  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!beside[i]) continue;
      const std::size_t space = widths[i] - shown_width(row[i]);
      if (i > 0) text += "  ";
      if (right[i]) text.append(space, ' ');
      text += row[i];
      if (!right[i]) text.append(space, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  add(headers);
  for (const auto& row : rows) {
    add(row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (beside[i] || row[i].empty()) continue;
      const std::string label = headers[i].empty() ? "" : headers[i] + ": ";
      text += wrapped("    " + label + row[i], static_cast<std::size_t>(width), std::string(6, ' '));
    }
  }
  return text;
}

}  // namespace systole
