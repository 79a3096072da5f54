#pragma once
// The binary PGM (P5) and PPM (P6) of netpbm: a head of text, then samples of one or of two bytes, big-endian.

#include "execute/data/images/decoders.h"

namespace systole {

struct PnmHeader {
  ImageHeader image;
  std::int64_t largest = 255;  // sample: as white is written
  std::size_t samples = 0;     // the byte where they begin
};

// Errors: corrupt.
Result<PnmHeader> read_pnm_header(std::string_view bytes);
Result<PixelBox> decode_pnm(const EncodedImage& file, Image& into);

}  // namespace systole
