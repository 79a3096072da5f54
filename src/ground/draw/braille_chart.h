#pragma once
// A line chart as text for a terminal: Braille dots (2 x 4 per character), with the scale on the left.
//
//   6.21 ┤⣧
//        │⠈⠙⠢⣀
//   2.05 ┤    ⠉⠒⠤⠤⣀⣀
//         0         569

#include <span>
#include <string>

namespace systole {

struct Point {
  double x = 0, y = 0;
};

// `width` and `height` are in characters; the width includes scale and axis. Points that are not finite are skipped;
// returns "" if fewer than two remain. Several points in one dot column are drawn as their mean.
// REQUIRES: points ascend in x; width >= 20, height >= 3.
std::string chart(std::span<const Point> points, int width, int height);

}  // namespace systole
