#pragma once
// For tests: pictures, and files of them by the libraries' encoders; libjpeg-turbo's decoder, called directly.

#include <string>

#include "execute/data/images/image.h"

namespace systole {

// Smooth shapes with detail at every scale, as photographs have; no two seeds alike. `detail`: how strong a scale is
// beside the one of twice its size.
Image some_picture(int width, int height, int channels, std::uint64_t seed, double detail = 0.5);

struct JpegFile {
  int quality = 90;
  int across = 2, down = 2;  // chroma is subsampled so
  bool progressive = false;
  bool scans_of_one_bit = false;  // of progressive: 760 scans
  bool scan_each = false;         // a scan for each component, not progressive
  int restart = 0;                // blocks between restart markers
  bool inverted_inks = false;     // of 4 channels: CMYK, marked as Adobe's
};
std::string jpeg_of(const Image& image, const JpegFile& how = {});
// The whole file by a plain loop over jpeg_read_scanlines.
Image decoded_by_libjpeg(const std::string& file);

struct PngFile {
  int type = 2;  // as in IHDR: 0 gray, 2 RGB, 3 palette, 4 and 6 with alpha; channels are those of the image
  int bits = 8;  // 16: below each byte another one
  bool interlaced = false;
  std::size_t bomb = 0;  // bytes of zeros in a compressed text and in a profile
};
std::string png_of(const Image& image, const PngFile& how = {});

std::string webp_of(const Image& image, bool lossless);  // of 3 or 4 channels
std::string ppm_of(const Image& image);

}  // namespace systole
