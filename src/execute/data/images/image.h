#pragma once
// Images as data sets hold them: JPEG, PNG, WebP (not animated), and the binary PPM and PGM, told apart by their first
// bytes. Each is decoded by its own library, loaded at the first image (image_library.h).
//
// What the pixels are:
// * JPEG: libjpeg-turbo's, to the bit; baseline, progressive or arithmetic, 8 bits. Always the full decode: those to
//   1/2, 1/4 and 1/8 differ from it by more than 1/255. CMYK and YCCK become RGB as in Pillow: inks are stored
//   inverted, as Adobe does, and no colour profile is used.
// * PNG: 1, 2, 4, 8 and 16 bits and palettes become 8 bits. Gamma and profiles are not applied.
// * WebP: lossy and lossless.
// * Alpha is dropped, not blended with a background. The orientation that EXIF tells is not applied. Both are what
//   Pillow's and torchvision's convert("RGB") give.
//
// A file is not trusted: its size in pixels is checked before memory is taken, chunks that no pixel depends on (iCCP,
// zTXt) are never decompressed, and a progressive JPEG may have 500 scans.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

enum class ImageFormat { jpeg, png, webp, ppm };

const char* name_of(ImageFormat format);

// What the head of a file says; nothing is decoded.
struct ImageHeader {
  ImageFormat format = ImageFormat::jpeg;
  std::int64_t width = 0, height = 0;
  int channels = 3;  // in the file: with alpha, or of CMYK, 4
};

std::string to_string(const ImageHeader& header);  // "JPEG 640 x 480, 3 channels"

// By its first bytes; nothing: none of ours.
std::optional<ImageFormat> image_format_of(std::string_view bytes);

// Errors: unsupported (audio; a format or a kind of one that is not decoded, by name), corrupt.
Result<ImageHeader> read_image_header(std::string_view bytes);

// 89,478,485 pixels are RGB of 256 MiB, beyond which Pillow warns of a bomb. Decoding takes up to 15 bytes a pixel
// (progressive CMYK), usually 5.
struct ImageLimits {
  std::int64_t pixels = (std::int64_t{256} << 20) / 3;
  std::int64_t side = 65'535;  // as in JPEG
};

struct Image {
  int width = 0, height = 0;
  int channels = 0;                  // 1: gray; 3: RGB; 4: RGB and a byte that means nothing
  std::vector<std::uint8_t> pixels;  // row after row, a pixel's channels side by side
};

// Gray stays gray. Thread-safe. Errors: those of read_image_header; does_not_fit (more pixels than the limit);
// unsupported (the library is not installed); corrupt, with the byte.
Result<Image> decode_image(std::string_view bytes, const ImageLimits& limits = {});

}  // namespace systole
