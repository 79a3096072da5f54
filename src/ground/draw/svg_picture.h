#pragma once
// An SVG picture of lines, areas, boxes, dots and text, without scripts or fonts of its own. Positions and lengths are
// in pixels from the upper left corner. Later elements cover earlier ones. A title is shown as a tooltip.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace systole {

// Okabe and Ito's palette for color-blind readers; repeats after eight.
const char* colour_of(std::size_t i);

enum class TextAnchor { start, middle, end };

class SvgPicture {
 public:
  SvgPicture(double width, double height) : width_(width), height_(height) {}

  void line(double x1, double y1, double x2, double y2, std::string_view colour, bool dashed = false);
  void path(const std::vector<std::pair<double, double>>& points, std::string_view colour);
  // A filled polygon.
  void area(const std::vector<std::pair<double, double>>& corners, std::string_view colour);
  void box(double x, double y, double width, double height, std::string_view colour, std::string_view title = {});
  // `opacity`: 0 (invisible) to 1.
  void dot(double x, double y, double radius, std::string_view colour, std::string_view title = {}, double opacity = 1);
  void ring(double x, double y, double radius, std::string_view colour, std::string_view title = {});
  void words(double x, double y, std::string_view text, TextAnchor anchor = TextAnchor::start, double size = 12);
  void words_upwards(double x, double y, std::string_view text);
  std::string text() const;

 private:
  double width_, height_;
  std::string body_;
};

}  // namespace systole
