// Files that lie, end early, are damaged or are something else: an error that says what, and no memory taken for it.

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "execute/data/images/image.h"
#include "execute/data/images/testing/image_files.h"
#include "ground/base/testing/processor_time.h"
#include "ground/base/units.h"

namespace systole {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string big(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

// The bytes of a PNG's first chunk of this type, with its length before and its CRC behind it.
std::pair<std::size_t, std::size_t> chunk_of(const std::string& png, const std::string& type) {
  const std::size_t at = png.find(type) - 4;
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(png[at + i]);
  return {at, size + 12};
}
void set_crc(std::string& png, std::size_t chunk, std::size_t size) {
  const auto* bytes = reinterpret_cast<const Bytef*>(png.data()) + chunk + 4;
  png.replace(chunk + size - 4, 4, big(static_cast<std::uint32_t>(crc32(0, bytes, static_cast<uInt>(size - 8)))));
}

Error error_of(const std::string& file, const ImageLimits& limits = {}) {
  const Result<Image> image = decode_image(file, limits);
  EXPECT_FALSE(image.ok());
  return image.ok() ? Error{} : image.error();
}

std::vector<std::string> good_files() {
  const Image image = some_picture(64, 48, 3, 1);
  return {jpeg_of(image),        jpeg_of(image, {.progressive = true}),
          png_of(image),         png_of(image, {.interlaced = true}),
          webp_of(image, false), webp_of(image, true),
          ppm_of(image)};
}

TEST(HostileImages, a_hundred_thousand_by_a_hundred_thousand) {
  std::string png = png_of(some_picture(8, 8, 3, 1));
  png.replace(16, 8, big(100'000) + big(100'000));
  set_crc(png, 8, 25);
  const Error told = error_of(png);
  EXPECT_EQ(told.kind, ErrorKind::does_not_fit);
  EXPECT_EQ(told.message, "PNG is of 100,000 x 100,000 pixels: at most 89,478,485 and 65,535 a side are decoded");
  EXPECT_EQ(error_of("P6 100000 100000 255\n").kind, ErrorKind::does_not_fit);
  EXPECT_EQ(error_of("P6 9999999999 9999999999 255\n").kind, ErrorKind::does_not_fit);
  std::string jpeg = jpeg_of(some_picture(8, 8, 3, 1));
  jpeg.replace(jpeg.find("\xff\xc0") + 5, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(error_of(jpeg).kind, ErrorKind::does_not_fit);
  EXPECT_EQ(error_of(ppm_of(some_picture(8, 8, 3, 1)), {.pixels = 63}).kind, ErrorKind::does_not_fit);
  EXPECT_TRUE(decode_image(ppm_of(some_picture(8, 8, 3, 1)), {.pixels = 64}).ok());
}

TEST(HostileImages, a_file_that_is_cut_short_anywhere) {
  for (const std::string& file : good_files()) {
    for (std::size_t size = 0; size < file.size(); size += 1 + file.size() / 300) {
      const Error told = error_of(file.substr(0, size));
      EXPECT_EQ(told.kind, ErrorKind::corrupt) << told.message << " " << size;
    }
    const std::size_t most = file.size() * 3 / 4;
    EXPECT_TRUE(has(error_of(file.substr(0, most)).message,
                    fmt::format("is cut short at byte {}", with_commas(static_cast<std::int64_t>(most)))))
        << error_of(file.substr(0, most)).message;
  }
}

TEST(HostileImages, bytes_that_are_wrong_are_an_error_or_an_image) {
  std::mt19937 random(7);
  std::int64_t refused = 0;
  for (const std::string& good : good_files()) {
    for (int i = 0; i < 100; ++i) {
      std::string file = good;
      for (int k = 0; k < 3; ++k) file[random() % file.size()] = static_cast<char>(random());
      const Result<Image> image = decode_image(file, {.pixels = 1 << 20});
      if (!image.ok()) ++refused;
      if (image.ok()) {
        EXPECT_EQ(image->pixels.size(), static_cast<std::size_t>(image->width * image->height * image->channels));
      }
    }
  }
  EXPECT_GT(refused, 250) << "PNG has checksums";
}

TEST(HostileImages, a_wrong_crc_says_where) {
  std::string png = png_of(some_picture(64, 48, 3, 1));
  const auto [at, size] = chunk_of(png, "IDAT");
  png[at + size - 1] ^= 1;
  const Error told = error_of(png);
  EXPECT_EQ(told.kind, ErrorKind::corrupt);
  EXPECT_EQ(told.message, fmt::format("PNG is corrupt at byte {}: IDAT: CRC error",
                                      with_commas(static_cast<std::int64_t>(at + size))));
}

TEST(HostileImages, what_is_compressed_beside_the_pixels_is_not_decompressed) {
  const Image image = some_picture(16, 16, 3, 1);
  std::string png = png_of(image, {.bomb = 7'000'000});
  const auto [at, size] = chunk_of(png, "zTXt");
  ASSERT_LT(size, 10'000U);
  const std::string text = png.substr(at, size);
  std::string profile = text;
  profile.replace(4, 4, "iCCP");  // laid out alike
  set_crc(profile, 0, size);
  for (int i = 0; i < 200; ++i) png.insert(at, i == 0 ? profile : text);  // 1.4 GB
  const Seconds began = processor_time();
  EXPECT_EQ(decode_image(png)->pixels, image.pixels);
  EXPECT_LT(processor_time() - began, Seconds(0.3));
}

TEST(HostileImages, too_many_scans) {
  const Error told = error_of(jpeg_of(some_picture(16, 16, 3, 1), {.progressive = true, .scans_of_one_bit = true}));
  EXPECT_TRUE(has(told.message, "more than 500 scans")) << told.message;
}

TEST(HostileImages, what_is_no_image_of_ours_is_named) {
  const auto told = [](std::string_view bytes) {
    const Error error = decode_image(std::string(bytes)).error();
    return std::string(name_of(error.kind)) + ": " + error.message;
  };
  const std::string unsupported = name_of(ErrorKind::unsupported), corrupt = name_of(ErrorKind::corrupt);
  EXPECT_EQ(told(std::string_view("RIFF\x24\0\0\0WAVEfmt ", 16)), unsupported + ": WAV: audio is out of scope");
  EXPECT_EQ(told("fLaC...."), unsupported + ": FLAC: audio is out of scope");
  EXPECT_EQ(told("ID3....."), unsupported + ": MP3: audio is out of scope");
  EXPECT_EQ(told("\xff\xfb\x90.."), unsupported + ": MP3: audio is out of scope");
  EXPECT_EQ(told("GIF89a.."), unsupported + ": a file of GIF: JPEG, PNG, WebP and binary PPM and PGM are decoded");
  EXPECT_EQ(told("P3 1 1 255 1 1 1"),
            unsupported + ": a file of PPM as text: JPEG, PNG, WebP and binary PPM and PGM are decoded");
  std::string animation = webp_of(some_picture(8, 8, 3, 1), false);
  animation.replace(12, 18, std::string("VP8X\x0a\0\0\0\2\0\0\0\7\0\0\7\0\0", 18));
  EXPECT_EQ(told(animation), unsupported + ": WebP is an animation: one picture is decoded");
  EXPECT_EQ(told(""), corrupt + ": no image: its 0 bytes do not begin as JPEG, PNG, WebP, PPM or PGM do");
}

}  // namespace
}  // namespace systole
