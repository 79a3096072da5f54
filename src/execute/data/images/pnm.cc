#include "execute/data/images/pnm.h"

#include <algorithm>
#include <cctype>

#include "ground/base/units.h"

namespace systole {
namespace {

// The next number of the head, behind white space and comments; nothing: there is none.
std::optional<std::int64_t> next_number(std::string_view bytes, std::size_t& at) {
  while (at < bytes.size() && (std::isspace(static_cast<unsigned char>(bytes[at])) != 0 || bytes[at] == '#')) {
    if (bytes[at] == '#') at = std::min(bytes.find('\n', at), bytes.size() - 1);
    ++at;
  }
  std::int64_t value = 0;
  const std::size_t first = at;
  while (at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9' && at - first < 10)
    value = value * 10 + (bytes[at++] - '0');
  return at == first ? std::nullopt : std::optional(value);
}

}  // namespace

Result<PnmHeader> read_pnm_header(std::string_view bytes) {
  PnmHeader header;
  header.image.format = ImageFormat::ppm;
  header.image.channels = bytes[1] == '6' ? 3 : 1;
  header.samples = 2;
  for (std::int64_t* number : {&header.image.width, &header.image.height, &header.largest}) {
    const std::optional<std::int64_t> found = next_number(bytes, header.samples);
    if (!found) {
      return error(ErrorKind::corrupt, "PPM: no number of its head at byte {}",
                   with_commas(static_cast<std::int64_t>(header.samples)));
    }
    *number = *found;
  }
  if (header.largest < 1 || header.largest > 65535)
    return error(ErrorKind::corrupt, "PPM: its largest sample is {}: 1 to 65535", header.largest);
  ++header.samples;  // the one white space
  return header;
}

Result<PixelBox> decode_pnm(const EncodedImage& file, Image& into) {
  const PnmHeader header = TRY(read_pnm_header(file.bytes));
  const auto from = static_cast<std::size_t>(header.image.channels), to = static_cast<std::size_t>(into.channels);
  const std::size_t wide = header.largest > 255 ? 2 : 1;
  const auto pixels = static_cast<std::size_t>(header.image.width * header.image.height);
  const std::string_view samples = file.bytes.substr(std::min(header.samples, file.bytes.size()));
  if (samples.size() < pixels * from * wide) return truncated(file, file.bytes.size());
  const auto largest = static_cast<unsigned>(header.largest);
  TRY(take_pixels(into, header.image.width, header.image.height));
  for (std::size_t i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < to; ++c) {
      const std::size_t at = (i * from + std::min(c, from - 1)) * wide;
      unsigned value = static_cast<unsigned char>(samples[at]);
      if (wide == 2) value = value << 8 | static_cast<unsigned char>(samples[at + 1]);
      if (largest != 255) value = std::min(255U, (value * 255 + largest / 2) / largest);
      into.pixels[i * to + c] = static_cast<std::uint8_t>(value);
    }
  }
  return whole_of(file.header);
}

}  // namespace systole
