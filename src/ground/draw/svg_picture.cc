#include "ground/draw/svg_picture.h"

#include <fmt/format.h>

namespace systole {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

std::string titled(std::string_view title) {
  return title.empty() ? "" : fmt::format("<title>{}</title>", escaped(title));
}

std::string listed(const std::vector<std::pair<double, double>>& points) {
  std::string text;
  for (const auto& [x, y] : points) text += fmt::format("{:.1f},{:.1f} ", x, y);
  return text;
}

}  // namespace

const char* colour_of(std::size_t i) {
  static constexpr const char* kColours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                             "#E69F00", "#56B4E9", "#000000", "#F0E442"};
  return kColours[i % std::size(kColours)];
}

void SvgPicture::line(double x1, double y1, double x2, double y2, std::string_view colour, bool dashed) {
  body_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}/>\n", x1, y1, x2,
                       y2, colour, dashed ? " stroke-dasharray=\"5 4\"" : "");
}

void SvgPicture::path(const std::vector<std::pair<double, double>>& points, std::string_view colour) {
  body_ +=
      fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", listed(points), colour);
}

void SvgPicture::area(const std::vector<std::pair<double, double>>& corners, std::string_view colour) {
  body_ += fmt::format("<polygon points=\"{}\" fill=\"{}\"/>\n", listed(corners), colour);
}

void SvgPicture::box(double x, double y, double width, double height, std::string_view colour, std::string_view title) {
  body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\">{}</rect>\n", x,
                       y, width, height, colour, titled(title));
}

void SvgPicture::dot(double x, double y, double radius, std::string_view colour, std::string_view title,
                     double opacity) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"{}>{}</circle>\n", x, y, radius,
                       colour, opacity < 1 ? fmt::format(" fill-opacity=\"{:g}\"", opacity) : "", titled(title));
}

void SvgPicture::ring(double x, double y, double radius, std::string_view colour, std::string_view title) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" stroke=\"{}\" fill=\"none\">{}</circle>\n", x,
                       y, radius, colour, titled(title));
}

void SvgPicture::words(double x, double y, std::string_view text, TextAnchor anchor, double size) {
  static constexpr const char* kAnchors[] = {"start", "middle", "end"};
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{:g}\">{}</text>\n", x, y,
                       kAnchors[static_cast<int>(anchor)], size, escaped(text));
}

void SvgPicture::words_upwards(double x, double y, std::string_view text) {
  body_ += fmt::format(
      "<text x=\"{0:.1f}\" y=\"{1:.1f}\" text-anchor=\"middle\" font-size=\"12\" transform=\"rotate(-90 {0:.1f} "
      "{1:.1f})\">"
      "{2}</text>\n",
      x, y, escaped(text));
}

std::string SvgPicture::text() const {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
             "font-family=\"sans-serif\" fill=\"#333\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
             width_, height_) +
         body_ + "</svg>\n";
}

}  // namespace systole
