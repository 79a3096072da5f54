// Decoding: JPEG to the bit as libjpeg-turbo, whole or a part; the others against what was encoded.

#include "execute/data/images/image.h"

#include <gtest/gtest.h>
#include <webp/decode.h>

#include <random>

#include "execute/data/images/decoders.h"
#include "execute/data/images/testing/image_files.h"

namespace systole {
namespace {

Image decoded(const std::string& file) { return decode_image(file).value(); }

std::string shape_of(const Image& image) {
  return fmt::format("{} x {} x {}", image.width, image.height, image.channels);
}

void expect_same(const Image& ours, const Image& wanted, const std::string& of) {
  EXPECT_EQ(shape_of(ours), shape_of(wanted)) << of;
  EXPECT_TRUE(ours.pixels == wanted.pixels) << of;
}

Image with_channels(const Image& image, int channels) {
  Image made{image.width, image.height, channels, {}};
  const auto from = static_cast<std::size_t>(image.channels), to = static_cast<std::size_t>(channels);
  for (std::size_t i = 0; i < image.pixels.size() / from; ++i)
    for (std::size_t c = 0; c < to; ++c) made.pixels.push_back(image.pixels[i * from + std::min(c, from - 1)]);
  return made;
}

// Files of every kind of JPEG that cameras and programs write.
std::vector<std::pair<std::string, std::string>> jpegs(int width, int height) {
  std::vector<std::pair<std::string, std::string>> files;
  const Image colour = some_picture(width, height, 3, 1), gray = some_picture(width, height, 1, 2);
  for (const auto& [across, down] : {std::pair(1, 1), {2, 1}, {2, 2}, {1, 2}, {4, 1}})
    for (const bool progressive : {false, true})
      files.emplace_back(fmt::format("{}x{} progressive {} {}x{}", across, down, progressive, width, height),
                         jpeg_of(colour, {.across = across, .down = down, .progressive = progressive}));
  files.emplace_back("restart", jpeg_of(colour, {.restart = 3}));
  files.emplace_back("a scan each", jpeg_of(colour, {.scan_each = true}));
  files.emplace_back("gray", jpeg_of(gray));
  return files;
}

TEST(Images, jpeg_is_that_of_libjpeg_turbo_to_the_bit) {
  for (const auto& [width, height] : {std::pair(97, 61), {500, 375}, {1, 1}, {16, 33}})
    for (const auto& [name, file] : jpegs(width, height)) expect_same(decoded(file), decoded_by_libjpeg(file), name);
}

TEST(Images, a_part_of_a_jpeg_is_that_of_the_whole) {
  std::mt19937 random(3);
  for (const auto& [name, file] : jpegs(173, 119)) {
    const Image whole = with_channels(decoded_by_libjpeg(file), 3);
    const ImageHeader header = read_image_header(file).value();
    for (int i = 0; i < 60; ++i) {
      PixelBox box{.width = 1 + static_cast<int>(random() % 173), .height = 1 + static_cast<int>(random() % 119)};
      box.x = static_cast<int>(random() % static_cast<unsigned>(174 - box.width));
      box.y = static_cast<int>(random() % static_cast<unsigned>(120 - box.height));
      Image part{0, 0, 4, {}};
      const PixelBox held = decode_jpeg({file, header, box}, part).value();
      ASSERT_TRUE(held.x <= box.x && held.y <= box.y && held.x + held.width >= box.x + box.width &&
                  held.y + held.height >= box.y + box.height);
      for (int y = box.y; y < box.y + box.height; ++y)
        for (int x = box.x; x < box.x + box.width; ++x)
          for (int c = 0; c < 3; ++c)
            ASSERT_EQ(part.pixels[static_cast<std::size_t>(((y - held.y) * held.width + x - held.x) * 4 + c)],
                      whole.pixels[static_cast<std::size_t>((y * 173 + x) * 3 + c)])
                << name << " " << x << " " << y << " of " << box.x << " " << box.y << " " << box.width << " "
                << box.height;
    }
  }
}

// Cameras and programs leave some, a few files of ImageNet among them.
TEST(Images, bytes_between_segments_are_passed_over) {
  const std::string good = jpeg_of(some_picture(40, 30, 3, 1));
  std::string file = good;
  file.insert(file.size() - 2, "left");
  file.insert(20, "over");  // behind APP0
  expect_same(decoded(file), decoded(good), "left over");
}

TEST(Images, inks_become_rgb) {
  Image inks{64, 32, 4, std::vector<std::uint8_t>(64 * 32 * 4, 255)};  // inverted: white, and cyan on the right
  for (std::size_t i = 0; i < 64 * 32; ++i) inks.pixels[4 * i] = i % 64 < 32 ? 255 : 0;
  const Image rgb = decoded(jpeg_of(inks, {.quality = 100, .inverted_inks = true}));
  ASSERT_EQ(shape_of(rgb), "64 x 32 x 3");
  const std::vector<int> white{255, 255, 255}, cyan{0, 255, 255};
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(rgb.pixels[3 * 5 + c], white[c], 3) << c;
    EXPECT_NEAR(rgb.pixels[3 * 55 + c], cyan[c], 3) << c;
  }
}

TEST(Images, png_of_every_kind) {
  const Image gray = some_picture(61, 43, 1, 3), colour = some_picture(61, 43, 3, 4), four = some_picture(61, 43, 4, 5);
  const Image two{61, 43, 2, std::vector<std::uint8_t>(four.pixels.begin(), four.pixels.begin() + 61 * 43 * 2)};
  for (const bool interlaced : {false, true}) {
    for (const int bits : {8, 16}) {
      expect_same(decoded(png_of(gray, {0, bits, interlaced})), gray, "gray");
      expect_same(decoded(png_of(colour, {2, bits, interlaced})), colour, "colour");
      expect_same(decoded(png_of(four, {6, bits, interlaced})), with_channels(four, 3), "alpha is dropped");
      expect_same(decoded(png_of(two, {4, bits, interlaced})), with_channels(two, 1), "alpha of gray is dropped");
    }
    Image palette = gray;
    for (std::uint8_t& index : palette.pixels) index = static_cast<std::uint8_t>(255 - index);
    expect_same(decoded(png_of(gray, {3, 8, interlaced})), with_channels(palette, 3), "palette");
  }
  Image wide{0, 0, 4, {}};
  for (const auto& [image, type] : {std::pair(gray, 0), {two, 4}, {colour, 2}, {four, 6}}) {
    const std::string file = png_of(image, {.type = type});
    const ImageHeader header = read_image_header(file).value();
    EXPECT_EQ(header.channels, image.channels);
    decode_png({file, header, whole_of(header)}, wide).value();
    wide.pixels.resize(61 * 43 * 4);
    expect_same(with_channels(wide, 3),
                with_channels(image, image.channels < 3 ? 1 : 3).channels == 1
                    ? with_channels(with_channels(image, 1), 3)
                    : with_channels(image, 3),
                "of four bytes");
  }
}

TEST(Images, webp) {
  const Image colour = some_picture(61, 43, 3, 6), four = some_picture(61, 43, 4, 7);
  expect_same(decoded(webp_of(colour, true)), colour, "lossless");
  expect_same(decoded(webp_of(four, true)), with_channels(four, 3), "alpha is dropped");
  EXPECT_EQ(to_string(read_image_header(webp_of(four, true)).value()), "WebP 61 x 43, 4 channels");
  for (const Image& image : {colour, four}) {
    const std::string file = webp_of(image, false);
    Image theirs{0, 0, 3, {}};
    std::uint8_t* pixels =
        WebPDecodeRGB(reinterpret_cast<const std::uint8_t*>(file.data()), file.size(), &theirs.width, &theirs.height);
    theirs.pixels.assign(pixels, pixels + 61 * 43 * 3);
    WebPFree(pixels);
    expect_same(decoded(file), theirs, "lossy");
    EXPECT_EQ(read_image_header(file)->channels, image.channels);
  }
}

TEST(Images, ppm_and_pgm) {
  for (const int channels : {1, 3}) {
    const Image image = some_picture(13, 7, channels, 8);
    expect_same(decoded(ppm_of(image)), image, "ppm");
  }
  EXPECT_EQ(decoded("P5 2 1 3\n\1\3").pixels, (std::vector<std::uint8_t>{85, 255}));
  EXPECT_EQ(decoded(std::string("P5\n2 1\n#x\n65535\n\x80\0\1\1", 21)).pixels, (std::vector<std::uint8_t>{128, 1}));
}

TEST(Images, headers_say_format_and_size) {
  const Image image = some_picture(33, 21, 3, 9);
  EXPECT_EQ(to_string(read_image_header(jpeg_of(image)).value()), "JPEG 33 x 21, 3 channels");
  EXPECT_EQ(to_string(read_image_header(png_of(image)).value()), "PNG 33 x 21, 3 channels");
  EXPECT_EQ(to_string(read_image_header(webp_of(image, false)).value()), "WebP 33 x 21, 3 channels");
  EXPECT_EQ(to_string(read_image_header(webp_of(image, true)).value()), "WebP 33 x 21, 3 channels");
  EXPECT_EQ(to_string(read_image_header("P5 4 5 255\n").value()), "PGM 4 x 5, 1 channel");
}

}  // namespace
}  // namespace systole
