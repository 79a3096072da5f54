#pragma once
// A picture of lines, boxes, dots and words, as SVG without scripts or fonts of its own.

#include <string>
#include <string_view>
#include <vector>

namespace systole::cli {

// Okabe and Ito's colours, which people who see few colours tell apart; more than eight begin anew.
const char* colour_of(std::size_t i);

enum class TextAnchor { start, middle, end };

class SvgPicture {
 public:
  SvgPicture(double width, double height) : width_(width), height_(height) {}

  void line(double x1, double y1, double x2, double y2, std::string_view colour, bool dashed = false);
  void path(const std::vector<std::pair<double, double>>& points, std::string_view colour);
  void box(double x, double y, double width, double height, std::string_view colour, std::string_view title = {});
  void dot(double x, double y, double radius, std::string_view colour, std::string_view title = {});
  void words(double x, double y, std::string_view text, TextAnchor anchor = TextAnchor::start, double size = 12);
  void words_upwards(double x, double y, std::string_view text);
  std::string text() const;

 private:
  double width_, height_;
  std::string body_;
};

}  // namespace systole::cli
