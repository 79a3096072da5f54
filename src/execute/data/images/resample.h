#pragma once
// Resizing by an antialiased triangle filter ("bilinear"), in the integer arithmetic of Pillow: to the bit what its
// Image.resize, and so torchvision's of PIL images, gives (libImaging/Resample.c). Weights are of 22 bits; rows first,
// rounded to 8 bits, then columns. Within 1/255 of the exact sums.

#include <cstdint>
#include <span>
#include <vector>

#include "execute/data/images/image.h"

namespace systole {

// Of each of the outputs: which inputs count, and how much.
struct ResampleTaps {
  int taps = 0;                       // per output, a multiple of 4; those beyond its inputs weigh 0
  std::vector<int> first;             // input of each output
  std::vector<int> used;              // of the taps
  std::vector<std::int16_t> weights;  // per output and 4 taps: 4 upper parts, 4 lower ones; upper * 2^11 + lower

  int outputs() const { return static_cast<int>(first.size()); }
  int begin() const { return first.front(); }  // of the inputs that any output needs
  int end() const { return first.back() + used.back(); }
};

// Four bytes a pixel, of an image of 1, 3 or 4 channels; with the padding of decoders.h.
std::vector<std::uint8_t> with_four_channels(const Image& image);

// Outputs [from, from + count) of a resize of `size` inputs to `to` outputs. REQUIRES: 0 < count, from + count <= to.
void make_taps(int size, int to, int from, int count, ResampleTaps& taps);

// Pixels of 4 bytes in rows of `row_pixels`; 32 bytes behind the last may be read.
struct PixelRows {
  const std::uint8_t* pixels = nullptr;
  int row_pixels = 0;
};

enum class ResampleKernel { fastest, plain };  // the same results

// Input 0 of the taps is pixel (x, y) of `rows`. `into` gets columns.outputs() x lines.outputs() pixels of 4 bytes;
// `between` is scratch. REQUIRES: `rows` has the inputs from begin() to end() of both.
void resample(const PixelRows& rows, int x, int y, const ResampleTaps& columns, const ResampleTaps& lines,
              std::vector<std::uint8_t>& between, std::vector<std::uint8_t>& into,
              ResampleKernel kernel = ResampleKernel::fastest);

// REQUIRES: width and height are at least 1; image.channels is 1, 3 or 4.
Image resize_image(const Image& image, int width, int height, ResampleKernel kernel = ResampleKernel::fastest);

}  // namespace systole
