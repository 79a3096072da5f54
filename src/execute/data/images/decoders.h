#pragma once
// The decoders of the formats, one signature each. Private to this folder.
//
// libjpeg and libpng are C and report errors by longjmp. So a decoder calls them in functions that hold nothing with a
// destructor, between a setjmp and the end; memory is taken outside of them.

#include "execute/data/images/image.h"

namespace systole {

struct PixelBox {
  int x = 0, y = 0, width = 0, height = 0;
  bool operator==(const PixelBox&) const = default;
};

struct EncodedImage {
  std::string_view bytes;
  ImageHeader header;  // read_image_header(bytes), within the limits
  PixelBox wanted;     // of its pixels; not empty
};

inline PixelBox whole_of(const ImageHeader& header) {
  return {0, 0, static_cast<int>(header.width), static_cast<int>(header.height)};
}

// Behind the last pixel, so that vectors of 32 bytes may be read at any.
inline constexpr std::size_t kPixelPadding = 32;

// Sizes `into` for width x height pixels of its channels, with the padding; keeps its memory. Errors: does_not_fit.
Status take_pixels(Image& into, std::int64_t width, std::int64_t height);

Error truncated(const EncodedImage& file, std::size_t byte);
Error corrupt_image(const EncodedImage& file, std::size_t byte, std::string_view why);

// Fills `into`, whose channels say what is made: 1 (of a gray file), 3, or 4 of any. The result says which box of the
// file's pixels it is: the wanted one or more. Errors: corrupt, with the byte; unsupported; does_not_fit.
Result<PixelBox> decode_jpeg(const EncodedImage& file, Image& into);
Result<PixelBox> decode_png(const EncodedImage& file, Image& into);
Result<PixelBox> decode_webp(const EncodedImage& file, Image& into);

// The header, with its size checked. Errors: those of read_image_header, does_not_fit.
Result<ImageHeader> header_within(std::string_view bytes, const ImageLimits& limits);
// By its format.
Result<PixelBox> decode_part(const EncodedImage& file, Image& into);

}  // namespace systole
