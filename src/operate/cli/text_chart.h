#pragma once
// Charts of characters, for a terminal of 80 to 100 columns.

#include <string>
#include <string_view>
#include <vector>

namespace systole::cli {

// Marks over two axes that grow by equal factors.
class TextChart {
 public:
  // `mark`: one character. Of two on the same place the later one is seen. REQUIRES: x and y above 0.
  void mark(double x, double y, std::string_view mark) { marks_.push_back({x, y, std::string(mark)}); }
  bool empty() const { return marks_.empty(); }
  // The words stand above the first axis and behind the second. `x_ticks`: numbers below it; none: 1, 2, 5, 10, ...
  std::string text(std::string_view y_words, std::string_view x_words, std::vector<double> x_ticks = {}) const;

 private:
  struct Mark {
    double x, y;
    std::string mark;
  };
  std::vector<Mark> marks_;
};

// One bar of several parts, "████▒▒░": each as long as its share of `columns`, together as long as their sum's.
std::string stacked_bar(const std::vector<std::pair<double, std::string_view>>& parts, std::size_t columns);

// Cut to so many characters, with "…" where something is missing. Of ASCII.
std::string shortened(const std::string& text, std::size_t columns);

}  // namespace systole::cli
