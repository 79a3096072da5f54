#include "ground/draw/svg_picture.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(SvgPicture, holds_what_was_drawn_in_its_order) {
  SvgPicture picture(100, 50);
  picture.area({{0, 0}, {10, 0}, {10, 10}}, "#dbe9d3");
  picture.dot(1, 2, 3, "#000", "a<b & c", 0.5);
  picture.ring(4, 5, 6, "#111");
  const std::string text = picture.text();
  EXPECT_TRUE(text.starts_with("<svg ") && text.ends_with("</svg>\n")) << text;
  std::size_t at = 0;
  for (const char* part : {"width=\"100\" height=\"50\"", "<polygon points=\"0.0,0.0 10.0,0.0 10.0,10.0 \"",
                           "fill=\"#000\" fill-opacity=\"0.5\"><title>a&lt;b &amp; c</title></circle>",
                           "stroke=\"#111\" fill=\"none\"></circle>"}) {
    at = text.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << "\n" << text;
  }
}

TEST(SvgPicture, colours_begin_anew_after_eight) {
  EXPECT_STREQ(colour_of(8), colour_of(0));
  EXPECT_STRNE(colour_of(1), colour_of(0));
}

}  // namespace
}  // namespace systole
