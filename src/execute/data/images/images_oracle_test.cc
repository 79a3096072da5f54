// Decoded and resized images beside Pillow, which tools/oracles/install puts into the build folder: the same bits.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "execute/data/images/resample.h"
#include "execute/data/images/testing/image_files.h"
#include "execute/data/testing/oracle.h"
#include "ground/store/sha256.h"
#include "ground/store/store.h"

namespace systole {
namespace {

const Oracle oracle("images");

std::map<std::string, std::string> files() {
  const Image colour = some_picture(211, 157, 3, 1), gray = some_picture(100, 131, 1, 2),
              four = some_picture(97, 61, 4, 3);
  return {{"420.jpg", jpeg_of(colour)},
          {"422.jpg", jpeg_of(colour, {.across = 2, .down = 1})},
          {"444.jpg", jpeg_of(colour, {.across = 1, .down = 1})},
          {"progressive.jpg", jpeg_of(colour, {.progressive = true})},
          {"gray.jpg", jpeg_of(gray)},
          {"inks.jpg", jpeg_of(four, {.inverted_inks = true})},
          {"colour.png", png_of(colour, {.interlaced = true})},
          {"gray.png", png_of(gray, {.type = 0})},
          {"palette.png", png_of(gray, {.type = 3})},
          {"alpha.png", png_of(four, {.type = 6})},
          {"sixteen.png", png_of(colour, {.bits = 16})},
          {"lossy.webp", webp_of(colour, false)},
          {"alpha.webp", webp_of(four, true)},
          {"colour.ppm", ppm_of(colour)},
          {"gray.pgm", ppm_of(gray)}};
}

std::string hash_of(const Image& image) {
  return sha256_of(std::string_view(reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()));
}

TEST(ImagesOracle, the_same_bits_as_pillow) {
  SKIP_WITHOUT(oracle);
  const std::string folder = SYSTOLE_BINARY_DIR "/images_oracle";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto store = open_posix_store(folder).value();
  constexpr std::pair<int, int> kSizes[] = {{224, 224}, {97, 300}, {31, 17}, {1, 1}};
  std::string sizes;
  for (const auto& [width, height] : kSizes) sizes += fmt::format("{}x{}\n", width, height);
  write_whole(*store, "sizes.txt", sizes).value();
  for (const auto& [name, bytes] : files()) write_whole(*store, name, bytes).value();
  const Captured theirs = oracle.run_script("images_oracle.py", {folder});
  ASSERT_TRUE(theirs.exit.ok()) << theirs.err;
  std::map<std::string, std::string> hashes;
  std::istringstream text(theirs.out);
  for (std::string name, hash; text >> name >> hash;) hashes[name] = hash;
  ASSERT_EQ(hashes.size(), files().size() * (1 + std::size(kSizes))) << theirs.out;

  for (const auto& [name, bytes] : files()) {
    const Image image = decode_image(bytes).value();
    EXPECT_EQ(hash_of(image), hashes.at(name)) << name;
    for (const auto& [width, height] : kSizes)
      EXPECT_EQ(hash_of(resize_image(image, width, height)), hashes.at(fmt::format("{}-{}x{}", name, width, height)))
          << name << " to " << width << " x " << height;
  }
}

}  // namespace
}  // namespace systole
