// Resizing beside a slow exact one, and the vectors beside the plain loops. images_oracle_test.cc: beside Pillow.

#include "execute/data/images/resample.h"

#include <gtest/gtest.h>

#include <cmath>

#include "execute/data/images/testing/image_files.h"

namespace systole {
namespace {

// The weighted mean of a row's or a column's pixels under a triangle, in f64; nothing is rounded.
struct Exact {
  int width, height, channels;
  std::vector<double> pixels;
  double at(int x, int y, int c) const { return pixels[static_cast<std::size_t>((y * width + x) * channels + c)]; }
};

double under_triangle(int size, int to, int output, const std::function<double(int)>& input) {
  const double scale = static_cast<double>(size) / to, wide = std::max(1.0, scale), centre = (output + 0.5) * scale;
  double sum = 0, weights = 0;
  for (int i = 0; i < size; ++i) {
    const double weight = std::max(0.0, 1 - std::abs(i + 0.5 - centre) / wide);
    sum += weight * input(i);
    weights += weight;
  }
  return sum / weights;
}

Exact resized_exactly(const Image& image, int width, int height) {
  const Exact from{image.width, image.height, image.channels, {image.pixels.begin(), image.pixels.end()}};
  Exact across{width, image.height, image.channels, {}}, both{width, height, image.channels, {}};
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < image.channels; ++c)
        across.pixels.push_back(under_triangle(image.width, width, x, [&](int i) { return from.at(i, y, c); }));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < image.channels; ++c)
        both.pixels.push_back(under_triangle(image.height, height, y, [&](int i) { return across.at(x, i, c); }));
  return both;
}

struct Case {
  int width, height, to_width, to_height;
};
constexpr Case kCases[] = {{100, 75, 45, 44}, {33, 90, 64, 64}, {64, 64, 64, 64}, {1, 1, 5, 3},    {50, 1, 1, 1},
                           {301, 7, 10, 70},  {17, 200, 16, 9}, {8, 8, 1, 1},     {1200, 9, 7, 9}, {40, 30, 41, 31}};

TEST(Resample, within_a_level_of_the_exact_sums) {
  for (const Case& c : kCases) {
    for (const int channels : {1, 3}) {
      const Image image = some_picture(c.width, c.height, channels, 5, 0.8);
      const Image made = resize_image(image, c.to_width, c.to_height);
      const Exact exact = resized_exactly(image, c.to_width, c.to_height);
      ASSERT_EQ(made.pixels.size(), exact.pixels.size());
      // Each pass rounds to a level (1/2), and its weights to 2^-22.
      const double taps = 2.0 * std::max(c.width / c.to_width, c.height / c.to_height) + 3;
      const double most = 1 + 2 * 255 * taps * std::pow(2.0, -22);
      for (std::size_t i = 0; i < exact.pixels.size(); ++i)
        ASSERT_NEAR(made.pixels[i], exact.pixels[i], most) << c.width << " to " << c.to_width << " at " << i;
    }
  }
}

TEST(Resample, vectors_give_the_bits_of_the_plain_loops) {
  for (const Case& c : kCases) {
    const Image image = some_picture(c.width, c.height, 4, 6, 1.0);
    EXPECT_TRUE(resize_image(image, c.to_width, c.to_height).pixels ==
                resize_image(image, c.to_width, c.to_height, ResampleKernel::plain).pixels)
        << c.width << " x " << c.height;
  }
  const Image white{300, 200, 3, std::vector<std::uint8_t>(300 * 200 * 3, 255)};
  for (const std::uint8_t level : resize_image(white, 77, 91).pixels) ASSERT_EQ(level, 255) << "weights sum to 1";
}

TEST(Resample, the_same_size_is_the_same_image) {
  const Image image = some_picture(37, 29, 3, 7, 1.0);
  EXPECT_TRUE(resize_image(image, 37, 29).pixels == image.pixels);
}

}  // namespace
}  // namespace systole
