// JPEG by libjpeg-turbo (2.1; its interface of libjpeg 6.2). Of a box only the blocks in and around it are decoded:
// rows above it are entropy-decoded alone, what is below it is not read. The pixels are those of the whole image.

#include <csetjmp>
#include <cstdio>
// Needs the one above.
#include <jpeglib.h>
// And this one that.
#include <jerror.h>

#include <algorithm>
#include <utility>

#include "execute/data/images/decoders.h"
#include "execute/data/images/late_functions.h"

namespace systole {
namespace {

constexpr int kMostScans = 500;  // of a progressive file: each costs the time of a whole image
constexpr int kContext = 8;      // pixels beside a box that its own depend on, and more
constexpr int kRowsAtOnce = 16;

// clang-format off
#define FUNCTIONS(X) \
  X(jpeg_, std_error) X(jpeg_, CreateDecompress) X(jpeg_, read_header) X(jpeg_, start_decompress) \
  X(jpeg_, crop_scanline) X(jpeg_, skip_scanlines) X(jpeg_, read_scanlines) X(jpeg_, has_multiple_scans) \
  X(jpeg_, finish_decompress) X(jpeg_, destroy_decompress) X(jpeg_, resync_to_restart)
// clang-format on

SYSTOLE_LATE_FUNCTIONS(FUNCTIONS, "libjpeg.so.62", "libjpeg62-turbo", "JPEG is decoded by libjpeg-turbo")

// All that a longjmp passes over.
struct Decoder {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  std::jmp_buf jump;
  bool made, cut_short;
  char why[JMSG_LENGTH_MAX];
};

Decoder& decoder_of(j_common_ptr info) { return *static_cast<Decoder*>(info->client_data); }

[[noreturn]] void stop(j_common_ptr info) {
  Decoder& decoder = decoder_of(info);
  info->err->format_message(info, decoder.why);
  std::longjmp(decoder.jump, 1);
}

// libjpeg goes on with made-up pixels after a warning. Those that are about something else are no errors.
void warn(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR) stop(info);
}

boolean needs_more(j_decompress_ptr info) {
  Decoder& decoder = decoder_of(reinterpret_cast<j_common_ptr>(info));
  decoder.cut_short = true;
  std::longjmp(decoder.jump, 1);
}
void skip_input(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  if (static_cast<std::size_t>(count) > info->src->bytes_in_buffer) needs_more(info);
  info->src->next_input_byte += count;
  info->src->bytes_in_buffer -= static_cast<std::size_t>(count);
}
void nothing(j_decompress_ptr) {}

void look_at_progress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  Decoder& decoder = decoder_of(info);
  std::snprintf(decoder.why, sizeof decoder.why, "more than %d scans", kMostScans);
  std::longjmp(decoder.jump, 1);
}

J_COLOR_SPACE space_of(J_COLOR_SPACE stored, int channels) {
  if (stored == JCS_CMYK || stored == JCS_YCCK) return JCS_CMYK;
  return channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_EXT_RGBX;
}

// Up to the first row; `box` becomes what is decoded. False: an error, which `decoder` tells.
bool start(const Library& jpeg, Decoder& decoder, std::string_view bytes, int channels, PixelBox& box) {
  if (setjmp(decoder.jump) != 0) return false;
  decoder.info.err = jpeg.std_error(&decoder.errors);
  decoder.errors.error_exit = stop;
  decoder.errors.emit_message = warn;
  decoder.info.client_data = &decoder;
  decoder.made = true;
  jpeg.CreateDecompress(&decoder.info, JPEG_LIB_VERSION, sizeof decoder.info);
  decoder.source = {reinterpret_cast<const JOCTET*>(bytes.data()),
                    bytes.size(),
                    nothing,
                    needs_more,
                    skip_input,
                    jpeg.resync_to_restart,
                    nothing};
  decoder.info.src = &decoder.source;
  jpeg.read_header(&decoder.info, TRUE);
  decoder.progress.progress_monitor = look_at_progress;
  decoder.info.progress = &decoder.progress;
  decoder.info.out_color_space = space_of(decoder.info.jpeg_color_space, channels);
  jpeg.start_decompress(&decoder.info);
  // Of a progressive file blocks may be smoothed, for which their neighbours are needed; of any file of several scans all
  // were read by now.
  const auto width = static_cast<int>(decoder.info.output_width), height = static_cast<int>(decoder.info.output_height);
  if (jpeg.has_multiple_scans(&decoder.info) != 0 || (box.width == width && box.height == height)) {
    box = {0, 0, width, height};
    return true;
  }
  JDIMENSION left = static_cast<JDIMENSION>(std::max(0, box.x - kContext));
  JDIMENSION columns = static_cast<JDIMENSION>(std::min(width, box.x + box.width + kContext)) - left;
  if (columns < decoder.info.output_width) jpeg.crop_scanline(&decoder.info, &left, &columns);
  box.x = static_cast<int>(left);
  box.width = static_cast<int>(columns);
  return true;
}

bool read_rows(const Library& jpeg, Decoder& decoder, const PixelBox& box, std::uint8_t* pixels,
               std::size_t row_bytes) {
  if (setjmp(decoder.jump) != 0) return false;
  if (box.y > 0) jpeg.skip_scanlines(&decoder.info, static_cast<JDIMENSION>(box.y));
  for (int row = 0; row < box.height;) {
    JSAMPROW rows[kRowsAtOnce];
    const int count = std::min(kRowsAtOnce, box.height - row);
    for (int i = 0; i < count; ++i) rows[i] = pixels + static_cast<std::size_t>(row + i) * row_bytes;
    row += static_cast<int>(jpeg.read_scanlines(&decoder.info, rows, static_cast<JDIMENSION>(count)));
  }
  if (decoder.info.output_scanline == decoder.info.output_height) jpeg.finish_decompress(&decoder.info);
  return true;
}

// Adobe's inverted inks to RGB, as in Pillow: 255 - c - (255 - k) * c / 255 of inks that are not inverted.
void cmyk_to_rgb(const std::uint8_t* inks, std::size_t count, int channels, std::uint8_t* pixels) {
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned light = inks[4 * i + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned product = (255U - inks[4 * i + c]) * light + 128;
      const unsigned taken = ((product >> 8) + product) >> 8;  // product / 255, rounded
      pixels[i * static_cast<std::size_t>(channels) + c] = static_cast<std::uint8_t>(light - std::min(light, taken));
    }
  }
}

Error error_of(const Decoder& decoder, const EncodedImage& file) {
  if (decoder.cut_short) return truncated(file, file.bytes.size());
  if (decoder.errors.msg_code == JERR_OUT_OF_MEMORY)
    return error(ErrorKind::does_not_fit, "JPEG: {}", std::string_view(decoder.why));
  return corrupt_image(file, file.bytes.size() - decoder.source.bytes_in_buffer, decoder.why);
}

}  // namespace

Result<PixelBox> decode_jpeg(const EncodedImage& file, Image& into) {
  if (!library().ok()) return library().error();
  const Library& jpeg = *library();
  if (file.header.channels == 2) return error(ErrorKind::unsupported, "JPEG has 2 channels: 1, 3 and 4 are decoded");
  Decoder decoder{};
  struct Destroy {
    const Library& jpeg;
    Decoder& decoder;
    ~Destroy() {
      if (decoder.made) jpeg.destroy_decompress(&decoder.info);
    }
  } const destroy{jpeg, decoder};
  PixelBox box = file.wanted;
  if (!start(jpeg, decoder, file.bytes, into.channels, box)) return error_of(decoder, file);
  const std::size_t at = file.bytes.size() - decoder.source.bytes_in_buffer;
  if (decoder.info.image_width != file.header.width || decoder.info.image_height != file.header.height)
    return corrupt_image(file, at, "a second frame of another size");
  const auto width = static_cast<std::size_t>(box.width);
  TRY(take_pixels(into, box.width, box.height));
  const auto channels = static_cast<std::size_t>(into.channels);
  if (decoder.info.out_color_space == JCS_CMYK) {
    Image inks{.channels = 4};
    TRY(take_pixels(inks, box.width, box.height));
    if (!read_rows(jpeg, decoder, box, inks.pixels.data(), width * 4)) return error_of(decoder, file);
    cmyk_to_rgb(inks.pixels.data(), width * static_cast<std::size_t>(box.height), into.channels, into.pixels.data());
  } else {
    if (static_cast<std::size_t>(decoder.info.output_components) != channels)
      return corrupt_image(file, at, "channels of another number than its head says");
    if (!read_rows(jpeg, decoder, box, into.pixels.data(), width * channels)) return error_of(decoder, file);
  }
  // Below the box nothing was read, yet a file that is cut short is found whatever the box. In the data of a scan no
  // other FF is followed by D9; the decoder may have met it already.
  const std::string_view rest = file.bytes.substr(file.bytes.size() - decoder.source.bytes_in_buffer);
  const bool to_the_end = decoder.info.output_scanline == decoder.info.output_height;
  if (!to_the_end && decoder.info.unread_marker != JPEG_EOI && rest.find("\xff\xd9") == rest.npos)
    return truncated(file, file.bytes.size());
  return box;
}

}  // namespace systole
