#pragma once
// Charts of text characters, for a terminal of 80 to 100 columns.

#include <string>
#include <string_view>
#include <vector>

namespace systole {

// A scatter chart with two logarithmic axes.
class TextChart {
 public:
  // `mark`: one character. A later mark covers an earlier one at the same place. REQUIRES: x and y above 0.
  void mark(double x, double y, std::string_view mark) { marks_.push_back({x, y, std::string(mark)}); }
  bool empty() const { return marks_.empty(); }
  // `y_words` is above the y axis, `x_words` after the x axis. `x_ticks`: numbers below the x axis; empty: 1, 2, 5, 10,
  // ...
  std::string text(std::string_view y_words, std::string_view x_words, std::vector<double> x_ticks = {}) const;

 private:
  struct Mark {
    double x, y;
    std::string mark;
  };
  std::vector<Mark> marks_;
};

// A stacked bar, "████▒▒░": each part is as long as its share of `columns`, and the bar as long as their sum's.
std::string stacked_bar(const std::vector<std::pair<double, std::string_view>>& parts, std::size_t columns);

// Truncated to `columns` characters, with "…" where text is missing. REQUIRES: ASCII.
std::string shortened(const std::string& text, std::size_t columns);

}  // namespace systole
