#include "ground/draw/braille_chart.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace systole {
namespace {

TEST(Chart, a_falling_line_to_the_letter) {
  const std::vector<Point> points{{0, 3}, {1, 2}, {2, 1}, {3, 0}};
  EXPECT_EQ(chart(points, 20, 3),
            "3 ┤⠉⠉⠒⠒⠤⢄⣀\n"
            "  │       ⠉⠑⠒⠤⣀⡀\n"
            "0 ┤            ⠈⠉⠒⠢⢄\n"
            "   0               3\n");
}

TEST(Chart, what_is_not_finite_is_left_out) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(chart(std::vector<Point>{{0, 1}, {1, nan}}, 40, 4), "");
  EXPECT_NE(chart(std::vector<Point>{{0, 1}, {1, nan}, {2, 3}}, 40, 4), "");
}

TEST(Chart, a_constant_is_a_level_line) {
  const std::string text = chart(std::vector<Point>{{0, 5}, {10, 5}}, 24, 3);
  EXPECT_NE(text.find("5 ┤⣀"), text.npos) << text;
}

TEST(Chart, rows_are_as_many_as_asked_and_no_wider) {
  std::vector<Point> points;
  for (int i = 0; i < 1000; ++i) points.push_back({static_cast<double>(i), static_cast<double>((i * 37) % 100)});
  const std::string text = chart(points, 60, 8);
  int lines = 0;
  std::size_t width = 0;
  for (char c : text) {
    if (c == '\n') {
      ++lines;
      width = 0;
    } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {
      ++width;
    }
    EXPECT_LE(width, 60u);
  }
  EXPECT_EQ(lines, 9);
}

}  // namespace
}  // namespace systole
