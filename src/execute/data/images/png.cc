// PNG by libpng. Chunks that no pixel depends on are passed over: they may be decompression bombs, and what is in them
// is not used.

#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "execute/data/images/decoders.h"
#include "execute/data/images/late_functions.h"

namespace systole {
namespace {

// clang-format off
#define FUNCTIONS(X) \
  X(png_, create_read_struct) X(png_, create_info_struct) X(png_, destroy_read_struct) X(png_, get_error_ptr) \
  X(png_, set_read_fn) X(png_, set_user_limits) X(png_, set_keep_unknown_chunks) X(png_, read_info) \
  X(png_, get_color_type) X(png_, get_valid) X(png_, set_expand) X(png_, set_strip_16) X(png_, set_strip_alpha) \
  X(png_, set_gray_to_rgb) X(png_, set_filler) X(png_, set_interlace_handling) X(png_, read_update_info) \
  X(png_, get_rowbytes) X(png_, read_row) X(png_, read_end)
// clang-format on

SYSTOLE_LATE_FUNCTIONS(FUNCTIONS, "libpng16.so.16", "libpng16-16", "PNG is decoded by libpng")

// All that a longjmp passes over.
struct Decoder {
  png_structp reading;
  png_infop info;
  const char* bytes;
  std::size_t size, at;
  std::jmp_buf jump;
  int passes;
  bool cut_short;
  char why[120];
};

[[noreturn]] void stop(png_structp reading, png_const_charp why) {
  auto& decoder = *static_cast<Decoder*>(library()->get_error_ptr(reading));
  std::snprintf(decoder.why, sizeof decoder.why, "%s", why);
  std::longjmp(decoder.jump, 1);
}
void warn(png_structp, png_const_charp) {}

void read_bytes(png_structp reading, png_bytep into, std::size_t count) {
  auto& decoder = *static_cast<Decoder*>(library()->get_error_ptr(reading));
  if (count > decoder.size - decoder.at) {
    decoder.cut_short = true;
    std::longjmp(decoder.jump, 1);
  }
  std::memcpy(into, decoder.bytes + decoder.at, count);
  decoder.at += count;
}

// Up to the first row. False: an error, which `decoder` tells.
bool start(const Library& png, Decoder& decoder, int channels) {
  if (setjmp(decoder.jump) != 0) return false;
  decoder.reading = png.create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, stop, warn);
  decoder.info = decoder.reading == nullptr ? nullptr : png.create_info_struct(decoder.reading);
  if (decoder.info == nullptr) {
    std::snprintf(decoder.why, sizeof decoder.why, "libpng cannot begin");
    return false;
  }
  png.set_read_fn(decoder.reading, &decoder, read_bytes);
  png.set_user_limits(decoder.reading, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // ours are checked already
  png.set_keep_unknown_chunks(decoder.reading, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png.read_info(decoder.reading, decoder.info);
  const int type = png.get_color_type(decoder.reading, decoder.info);
  const bool alpha =
      (type & PNG_COLOR_MASK_ALPHA) != 0 || png.get_valid(decoder.reading, decoder.info, PNG_INFO_tRNS) != 0;
  png.set_expand(decoder.reading);
  png.set_strip_16(decoder.reading);
  if (channels == 4) {
    if ((type & PNG_COLOR_MASK_COLOR) == 0) png.set_gray_to_rgb(decoder.reading);
    if (!alpha) png.set_filler(decoder.reading, 0xff, PNG_FILLER_AFTER);
  } else if (alpha) {
    png.set_strip_alpha(decoder.reading);
  }
  decoder.passes = png.set_interlace_handling(decoder.reading);
  png.read_update_info(decoder.reading, decoder.info);
  return true;
}

bool read_rows(const Library& png, Decoder& decoder, std::uint8_t* pixels, std::size_t row_bytes, int height) {
  if (setjmp(decoder.jump) != 0) return false;
  for (int pass = 0; pass < decoder.passes; ++pass)
    for (int row = 0; row < height; ++row)
      png.read_row(decoder.reading, pixels + static_cast<std::size_t>(row) * row_bytes, nullptr);
  png.read_end(decoder.reading, nullptr);
  return true;
}

Error error_of(const Decoder& decoder, const EncodedImage& file) {
  return decoder.cut_short ? truncated(file, file.bytes.size()) : corrupt_image(file, decoder.at, decoder.why);
}

}  // namespace

Result<PixelBox> decode_png(const EncodedImage& file, Image& into) {
  if (!library().ok()) return library().error();
  const Library& png = *library();
  Decoder decoder{};
  decoder.bytes = file.bytes.data();
  decoder.size = file.bytes.size();
  struct Destroy {
    const Library& png;
    Decoder& decoder;
    ~Destroy() {
      if (decoder.reading != nullptr) png.destroy_read_struct(&decoder.reading, &decoder.info, nullptr);
    }
  } const destroy{png, decoder};
  if (!start(png, decoder, into.channels)) return error_of(decoder, file);
  const auto row_bytes = static_cast<std::size_t>(file.header.width * into.channels);
  if (png.get_rowbytes(decoder.reading, decoder.info) != row_bytes)
    return corrupt_image(file, decoder.at, "rows of another size than its head says");
  TRY(take_pixels(into, file.header.width, file.header.height));
  if (!read_rows(png, decoder, into.pixels.data(), row_bytes, into.height)) return error_of(decoder, file);
  return whole_of(file.header);
}

}  // namespace systole
