// WebP by libwebp: its decoder reads memory and writes memory, and its errors are values.

#include <webp/decode.h>

#include "execute/data/images/decoders.h"
#include "ground/base/late_library.h"

namespace systole {
namespace {

struct Library {
  decltype(&::WebPInitDecoderConfigInternal) init = nullptr;
  decltype(&::WebPDecode) decode = nullptr;
};

Result<Library> load_library() {
  Library entries;
  const LateLibrary library = TRY(LateLibrary::load({"libwebp.so.7", "libwebp7", "WebP is decoded by libwebp"}));
  TRY(library.fill(entries.init, "WebPInitDecoderConfigInternal"));
  TRY(library.fill(entries.decode, "WebPDecode"));
  return entries;
}

}  // namespace

Result<PixelBox> decode_webp(const EncodedImage& file, Image& into) {
  static const Result<Library> loaded = load_library();
  if (!loaded.ok()) return loaded.error();
  const auto* data = reinterpret_cast<const std::uint8_t*>(file.bytes.data());
  WebPDecoderConfig config;
  if (loaded->init(&config, WEBP_DECODER_ABI_VERSION) == 0)
    return error(ErrorKind::unsupported, "libwebp is of another version than this program was built for");
  TRY(take_pixels(into, file.header.width, file.header.height));
  config.output.colorspace = into.channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = into.pixels.data();
  config.output.u.RGBA.stride = into.width * into.channels;
  config.output.u.RGBA.size = into.pixels.size() - kPixelPadding;
  const VP8StatusCode status = loaded->decode(data, file.bytes.size(), &config);
  const bool other_size =
      status == VP8_STATUS_OK && (config.output.width != into.width || config.output.height != into.height);
  if (status == VP8_STATUS_NOT_ENOUGH_DATA || status == VP8_STATUS_SUSPENDED) return truncated(file, file.bytes.size());
  if (status == VP8_STATUS_OUT_OF_MEMORY) return error(ErrorKind::does_not_fit, "WebP: libwebp got no memory");
  if (status != VP8_STATUS_OK || other_size) {
    // libwebp does not say where. Files that are cut short differ from what RIFF says of their size.
    std::size_t size = 8;
    for (std::size_t i = 0; i < 4; ++i) size += static_cast<std::size_t>(data[4 + i]) << (8 * i);
    if (size > file.bytes.size()) return truncated(file, file.bytes.size());
    return corrupt_image(
        file, 12,
        other_size ? "its picture is of another size than its head says" : "libwebp cannot decode its picture");
  }
  return whole_of(file.header);
}

}  // namespace systole
