#pragma once
// A curve as text for a terminal: dots of Braille patterns (2 x 4 to a character), the scale on the left.
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

// `width` and `height` in characters, scale and axis included in the width. Points that are not finite are left out;
// "" when fewer than two remain. Where several points share a column of dots, their mean is drawn.
// REQUIRES: points ascend in x; width >= 20, height >= 3.
std::string chart(std::span<const Point> points, int width, int height);

}  // namespace systole
