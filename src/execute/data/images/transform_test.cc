// Cropping, resizing, flipping and normalising in one go beside the same step by step; random choices.

#include "execute/data/images/transform.h"

#include <gtest/gtest.h>

#include <cmath>

#include "execute/data/images/testing/image_files.h"

namespace systole {
namespace {

using Values = std::vector<float>;

Values transformed(ImageTransform& transform, const std::string& file, RowOfEpoch row) {
  Values values(transform.values());
  transform.decode(file, row, values).value();
  return values;
}

Image cut(const Image& image, const PixelBox& box) {
  Image made{box.width, box.height, 3, {}};
  for (int y = box.y; y < box.y + box.height; ++y)
    for (int x = box.x; x < box.x + box.width; ++x)
      for (int c = 0; c < 3; ++c)
        made.pixels.push_back(image.pixels[static_cast<std::size_t>((y * image.width + x) * image.channels +
                                                                    std::min(c, image.channels - 1))]);
  return made;
}

// Each step on whole images.
Values step_by_step(const ImageTransformOptions& options, const Image& image, RowOfEpoch row) {
  const ChosenCrop chosen = choose_crop(options, image.width, image.height, row);
  Image part = cut(image, chosen.box);
  if (options.crop == ImageCrop::centre) {
    const bool tall = part.width <= part.height;
    const int longer = options.shorter * std::max(part.width, part.height) / std::min(part.width, part.height);
    part = resize_image(part, tall ? options.shorter : longer, tall ? longer : options.shorter);
    part = cut(part,
               {static_cast<int>(std::nearbyint((part.width - options.width) / 2.0)),
                static_cast<int>(std::nearbyint((part.height - options.height) / 2.0)), options.width, options.height});
  }
  part = resize_image(part, options.width, options.height);
  Values values(part.pixels.size());
  for (int y = 0; y < options.height; ++y) {
    for (int x = 0; x < options.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const int from = chosen.flipped ? options.width - 1 - x : x;
        const auto channel = static_cast<std::size_t>(c);
        const float level =
            static_cast<float>(part.pixels[static_cast<std::size_t>((y * options.width + from) * 3 + c)]) / 255.0F;
        const int to = options.layout == ImageLayout::chw ? (c * options.height + y) * options.width + x
                                                          : (y * options.width + x) * 3 + c;
        values[static_cast<std::size_t>(to)] = (level - options.mean[channel]) / options.deviation[channel];
      }
    }
  }
  return values;
}

TEST(ImageTransform, is_its_steps_one_after_another) {
  const Image colour = some_picture(150, 113, 3, 1), gray = some_picture(90, 140, 1, 2);
  const std::vector<std::string> files{jpeg_of(colour),
                                       jpeg_of(colour, {.across = 1, .down = 1}),
                                       jpeg_of(gray),
                                       jpeg_of(colour, {.progressive = true}),
                                       png_of(gray, {.type = 0}),
                                       png_of(colour),
                                       webp_of(colour, false),
                                       ppm_of(colour)};
  for (const ImageCrop crop : {ImageCrop::none, ImageCrop::centre, ImageCrop::random}) {
    for (const ImageLayout layout : {ImageLayout::chw, ImageLayout::hwc}) {
      const ImageTransformOptions options{
          .width = 48, .height = 40, .crop = crop, .shorter = 57, .layout = layout, .seed = 9};
      ImageTransform transform = ImageTransform::create(options).value();
      for (const std::string& file : files) {
        const Image image = decode_image(file).value();
        for (std::uint64_t row = 0; row < 6; ++row) {
          const Values wanted = step_by_step(options, image, {1, row});
          EXPECT_TRUE(transformed(transform, file, {1, row}) == wanted) << static_cast<int>(crop) << " row " << row;
          Values applied(transform.values());
          transform.apply(image, {1, row}, applied);
          EXPECT_TRUE(applied == wanted);
        }
      }
    }
  }
}

TEST(ImageTransform, the_order_of_calls_changes_nothing) {
  const std::string file = jpeg_of(some_picture(150, 113, 3, 1)), other = jpeg_of(some_picture(31, 63, 3, 2));
  ImageTransform one = ImageTransform::create({.width = 32, .height = 32, .seed = 5}).value();
  ImageTransform two = ImageTransform::create({.width = 32, .height = 32, .seed = 5}).value();
  ImageTransform seeded = ImageTransform::create({.width = 32, .height = 32, .seed = 6}).value();
  std::vector<Values> forward, backward(20);
  for (std::uint64_t row = 0; row < 20; ++row)
    forward.push_back(transformed(one, row % 2 == 0 ? file : other, {3, row}));
  for (std::uint64_t row = 20; row-- > 0;) backward[row] = transformed(two, row % 2 == 0 ? file : other, {3, row});
  EXPECT_TRUE(forward == backward);
  EXPECT_FALSE(transformed(one, file, {3, 0}) == transformed(one, file, {4, 0})) << "another epoch";
  EXPECT_FALSE(transformed(one, file, {3, 0}) == transformed(one, file, {3, 2})) << "another row";
  EXPECT_FALSE(transformed(one, file, {3, 0}) == transformed(seeded, file, {3, 0})) << "another seed";
}

// Of what lies below a crop nothing is decoded.
TEST(ImageTransform, a_file_that_is_cut_short_is_found_whatever_the_crop) {
  ImageTransform transform = ImageTransform::create({.width = 8, .height = 8}).value();
  Values values(transform.values());
  for (const std::string& file : {jpeg_of(some_picture(150, 113, 3, 1)), jpeg_of(some_picture(60, 60, 1, 1))}) {
    for (std::uint64_t row = 0; row < 50; ++row) {
      ASSERT_TRUE(transform.decode(file, {0, row}, values).ok());
      for (const std::size_t less : {std::size_t{2}, std::size_t{20}, file.size() / 2}) {
        const Status done = transform.decode(std::string_view(file).substr(0, file.size() - less), {0, row}, values);
        ASSERT_FALSE(done.ok()) << "row " << row << " without " << less;
        ASSERT_EQ(done.error().kind, ErrorKind::corrupt);
      }
    }
  }
}

TEST(ImageTransform, random_crops_have_the_area_and_ratio_that_are_asked) {
  const ImageTransformOptions options{.scale = {0.2, 0.6}, .flip = 0.25, .seed = 1};
  double area = 0, flips = 0;
  constexpr int kRows = 4000;
  for (std::uint64_t row = 0; row < kRows; ++row) {
    const auto [box, flipped] = choose_crop(options, 400, 300, {0, row});
    ASSERT_TRUE(box.x >= 0 && box.y >= 0 && box.x + box.width <= 400 && box.y + box.height <= 300);
    const double share = box.width * box.height / 120'000.0, ratio = static_cast<double>(box.width) / box.height;
    ASSERT_TRUE(share > 0.19 && share < 0.61) << share;
    ASSERT_TRUE(ratio > 0.74 && ratio < 1.35) << ratio;
    area += share / kRows;
    flips += flipped ? 1.0 / kRows : 0;
  }
  EXPECT_NEAR(area, 0.4, 0.008);  // 4 standard errors
  EXPECT_NEAR(flips, 0.25, 0.028);
  const PixelBox strip = choose_crop({.scale = {1, 1}}, 1000, 10, {}).box;  // no box of a good ratio has this area
  EXPECT_EQ(strip, (PixelBox{493, 0, 13, 10}));
}

TEST(ImageTransform, options_that_make_no_sense) {
  EXPECT_FALSE(ImageTransform::create({.width = 0}).ok());
  EXPECT_FALSE(ImageTransform::create({.crop = ImageCrop::centre, .shorter = 200}).ok());
  EXPECT_FALSE(ImageTransform::create({.scale = {0, 1}}).ok());
  EXPECT_FALSE(ImageTransform::create({.ratio = {2, 1}}).ok());
  EXPECT_FALSE(ImageTransform::create({.flip = NAN}).ok());
  ImageTransform transform = ImageTransform::create({}).value();
  Values values(transform.values());
  EXPECT_EQ(transform.decode("fLaC", {}, values).error().message, "FLAC: audio is out of scope");
}

}  // namespace
}  // namespace systole
