// Formats and sizes, read from a file's first bytes without the libraries: they see nothing of a hostile file before
// its size is known.

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <utility>

#include "execute/data/images/pnm.h"
#include "ground/base/counted.h"
#include "ground/base/units.h"

namespace systole {
namespace {

using namespace std::literals;

// Big-endian or little-endian, `size` bytes at `at`. REQUIRES: they are there.
std::int64_t big(std::string_view bytes, std::size_t at, std::size_t size) {
  std::int64_t value = 0;
  for (const char c : bytes.substr(at, size)) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}
std::int64_t little(std::string_view bytes, std::size_t at, std::size_t size) {
  std::int64_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

Error cut_short(ImageFormat format, std::string_view bytes) {
  return error(ErrorKind::corrupt, "{} ends in its head, at byte {}", name_of(format), with_commas(std::ssize(bytes)));
}

// The segments up to the frame's (SOFn): ITU-T T.81, B.1.1.4 and B.2.2.
Result<ImageHeader> jpeg_header(std::string_view bytes) {
  std::size_t at = 2;
  while (at + 4 <= bytes.size()) {
    if (bytes[at] != '\xff') {
      ++at;  // libjpeg too skips what is between segments
      continue;
    }
    const auto marker = static_cast<unsigned char>(bytes[at + 1]);
    if (marker == 0xff || marker == 0 || marker == 1 || (marker >= 0xd0 && marker <= 0xd8)) {  // without a length
      at += marker == 0xff ? 1 : 2;
      continue;
    }
    if (marker == 0xd9 || marker == 0xda) {
      return error(ErrorKind::corrupt, "JPEG has no frame before its {} at byte {}", marker == 0xd9 ? "end" : "scan",
                   with_commas(static_cast<std::int64_t>(at)));
    }
    const bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (!frame) {
      at += 2 + static_cast<std::size_t>(big(bytes, at + 2, 2));
      continue;
    }
    if (at + 10 > bytes.size()) break;
    if (marker > 0xc2 && marker != 0xc9 && marker != 0xca)
      return error(ErrorKind::unsupported, "JPEG is {}, which is not decoded",
                   marker == 0xc3 || marker == 0xcb ? "lossless" : "hierarchical");
    if (bytes[at + 4] != 8) return error(ErrorKind::unsupported, "JPEG has {} bits: 8 are decoded", int{bytes[at + 4]});
    return ImageHeader{ImageFormat::jpeg, big(bytes, at + 7, 2), big(bytes, at + 5, 2),
                       static_cast<unsigned char>(bytes[at + 9])};
  }
  return cut_short(ImageFormat::jpeg, bytes);
}

Result<ImageHeader> png_header(std::string_view bytes) {
  if (bytes.size() < 29) return cut_short(ImageFormat::png, bytes);
  constexpr std::array<int, 7> kChannels{1, 0, 3, 3, 2, 0, 4};  // of a palette: its colours'
  const auto type = static_cast<std::size_t>(static_cast<unsigned char>(bytes[25]));
  if (bytes.substr(12, 4) != "IHDR" || type >= kChannels.size() || kChannels[type] == 0)
    return error(ErrorKind::corrupt, "PNG does not begin with a good IHDR, at byte 8");
  return ImageHeader{ImageFormat::png, big(bytes, 16, 4), big(bytes, 20, 4), kChannels[type]};
}

// RIFF with a chunk VP8 (lossy), VP8L (lossless) or VP8X (has either, and perhaps alpha and animation).
Result<ImageHeader> webp_header(std::string_view bytes) {
  if (bytes.size() < 30) return cut_short(ImageFormat::webp, bytes);
  const std::string_view chunk = bytes.substr(12, 4);
  if (chunk == "VP8 ")
    return ImageHeader{ImageFormat::webp, little(bytes, 26, 2) & 0x3fff, little(bytes, 28, 2) & 0x3fff, 3};
  const int flags = static_cast<unsigned char>(bytes[20]);
  if (chunk == "VP8X") {
    if ((flags & 2) != 0) return error(ErrorKind::unsupported, "WebP is an animation: one picture is decoded");
    return ImageHeader{ImageFormat::webp, little(bytes, 24, 3) + 1, little(bytes, 27, 3) + 1,
                       (flags & 16) != 0 ? 4 : 3};
  }
  if (chunk != "VP8L" || flags != 0x2f) return error(ErrorKind::corrupt, "WebP has no picture at byte 12");
  const std::int64_t bits = little(bytes, 21, 4);
  return ImageHeader{ImageFormat::webp, (bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1, (bits >> 28 & 1) != 0 ? 4 : 3};
}

// Formats that people have and that are not decoded: where their sign stands, the sign, what they are.
struct Foreign {
  std::size_t at;
  std::string_view sign, name;
};
constexpr Foreign kForeign[] = {{8, "WAVE", "WAV: audio"},
                                {0, "fLaC", "FLAC: audio"},
                                {0, "OggS", "Ogg: audio"},
                                {0, "ID3", "MP3: audio"},
                                {0, "\xff\xfb", "MP3: audio"},
                                {0, "\xff\xf3", "MP3: audio"},
                                {0, "\xff\xf2", "MP3: audio"},
                                {0, "\xff\xfa", "MP3: audio"},
                                {0, "GIF8", "GIF"},
                                {0, "II*\0"sv, "TIFF"},
                                {0, "MM\0*"sv, "TIFF"},
                                {4, "ftypavif", "AVIF"},
                                {4, "ftyphei", "HEIC"},
                                {4, "ftypM4A", "M4A: audio"},
                                {4, "ftyp", "MP4"},
                                {0, "\xff\x0a", "JPEG XL"},
                                {4, "JXL ", "JPEG XL"},
                                {4, "jP  ", "JPEG 2000"},
                                {0, "BM", "BMP"},
                                {0, "P1\n", "PBM"},
                                {0, "P4\n", "PBM"},
                                {0, "P2", "PGM as text"},
                                {0, "P3", "PPM as text"},
                                {0, "P7\n", "PAM"}};

Error not_decoded(std::string_view bytes) {
  for (const auto& [at, sign, name] : kForeign) {
    if (bytes.size() < at + sign.size() || bytes.substr(at, sign.size()) != sign) continue;
    if (name.ends_with(": audio")) return error(ErrorKind::unsupported, "{} is out of scope", name);
    return error(ErrorKind::unsupported, "a file of {}: JPEG, PNG, WebP and binary PPM and PGM are decoded", name);
  }
  return error(ErrorKind::corrupt, "no image: its {} do not begin as JPEG, PNG, WebP, PPM or PGM do",
               counted(bytes.size(), "byte"));
}

}  // namespace

const char* name_of(ImageFormat format) {
  return std::array{"JPEG", "PNG", "WebP", "PPM"}[static_cast<std::size_t>(format)];
}

std::string to_string(const ImageHeader& header) {
  const bool gray = header.format == ImageFormat::ppm && header.channels == 1;
  return fmt::format("{} {} x {}, {}", gray ? "PGM" : name_of(header.format), header.width, header.height,
                     counted(header.channels, "channel"));
}

std::optional<ImageFormat> image_format_of(std::string_view bytes) {
  if (bytes.starts_with("\xff\xd8\xff")) return ImageFormat::jpeg;
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return ImageFormat::png;
  if (bytes.starts_with("RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == "WEBP") return ImageFormat::webp;
  const bool pnm = bytes.size() > 2 && (bytes.starts_with("P5") || bytes.starts_with("P6"));
  if (pnm && std::isspace(static_cast<unsigned char>(bytes[2])) != 0) return ImageFormat::ppm;
  return std::nullopt;
}

Result<ImageHeader> read_image_header(std::string_view bytes) {
  const std::optional<ImageFormat> format = image_format_of(bytes);
  if (!format) return not_decoded(bytes);
  ImageHeader header;
  switch (*format) {
    case ImageFormat::jpeg: header = TRY(jpeg_header(bytes)); break;
    case ImageFormat::png: header = TRY(png_header(bytes)); break;
    case ImageFormat::webp: header = TRY(webp_header(bytes)); break;
    case ImageFormat::ppm: header = TRY(read_pnm_header(bytes)).image; break;
  }
  if (header.width == 0 || header.height == 0)
    return error(ErrorKind::corrupt, "{} is of {} x {} pixels", name_of(*format), header.width, header.height);
  return header;
}

}  // namespace systole
