#include <new>

#include "execute/data/images/decoders.h"
#include "execute/data/images/pnm.h"
#include "ground/base/units.h"

namespace systole {

Status take_pixels(Image& into, std::int64_t width, std::int64_t height) {
  into.width = static_cast<int>(width);
  into.height = static_cast<int>(height);
  const auto bytes = static_cast<std::size_t>(width * height * into.channels) + kPixelPadding;
  try {
    into.pixels.resize(bytes);
  } catch (const std::bad_alloc&) {
    return error(ErrorKind::does_not_fit, "an image of {} x {} pixels needs {}", width, height,
                 to_string(Bytes(static_cast<std::int64_t>(bytes))));
  }
  return {};
}

Error truncated(const EncodedImage& file, std::size_t byte) {
  return error(ErrorKind::corrupt, "{} is cut short at byte {}", name_of(file.header.format),
               with_commas(static_cast<std::int64_t>(byte)));
}

Error corrupt_image(const EncodedImage& file, std::size_t byte, std::string_view why) {
  return error(ErrorKind::corrupt, "{} is corrupt at byte {}: {}", name_of(file.header.format),
               with_commas(static_cast<std::int64_t>(byte)), why);
}

Result<ImageHeader> header_within(std::string_view bytes, const ImageLimits& limits) {
  const ImageHeader header = TRY(read_image_header(bytes));
  const bool too_long = header.width > limits.side || header.height > limits.side;
  if (too_long || header.width > limits.pixels / header.height) {
    return error(ErrorKind::does_not_fit, "{} is of {} x {} pixels: at most {} and {} a side are decoded",
                 name_of(header.format), with_commas(header.width), with_commas(header.height),
                 with_commas(limits.pixels), with_commas(limits.side));
  }
  return header;
}

Result<PixelBox> decode_part(const EncodedImage& file, Image& into) {
  switch (file.header.format) {
    case ImageFormat::jpeg: return decode_jpeg(file, into);
    case ImageFormat::png: return decode_png(file, into);
    case ImageFormat::webp: return decode_webp(file, into);
    case ImageFormat::ppm: break;
  }
  return decode_pnm(file, into);
}

Result<Image> decode_image(std::string_view bytes, const ImageLimits& limits) {
  const ImageHeader header = TRY(header_within(bytes, limits));
  Image image;
  image.channels = header.channels < 3 ? 1 : 3;
  TRY(decode_part({bytes, header, whole_of(header)}, image));
  image.pixels.resize(image.pixels.size() - kPixelPadding);
  return image;
}

}  // namespace systole
