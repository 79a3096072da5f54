#include "execute/data/images/testing/image_files.h"

#include <fmt/format.h>
#include <png.h>
#include <webp/encode.h>

#include <cstdio>
// jpeglib.h needs it before.
#include <jpeglib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ground/base/philox.h"

namespace systole {
namespace {

// Random values at the points of a grid of `cell` pixels, and between them.
class Noise {
 public:
  Noise(int width, int height, double cell, std::uint64_t seed, std::uint64_t octave)
      : cell_(cell), columns_(static_cast<std::size_t>(width / cell) + 2) {
    PhiloxStream random(seed, octave);
    values_.resize(columns_ * (static_cast<std::size_t>(height / cell) + 2));
    for (double& value : values_) value = random.uniform() - 0.5;
  }
  double at(int x, int y) const {
    const double fx = std::floor(x / cell_), fy = std::floor(y / cell_), u = x / cell_ - fx, v = y / cell_ - fy;
    const double* corner = values_.data() + static_cast<std::size_t>(fy) * columns_ + static_cast<std::size_t>(fx);
    return (corner[0] * (1 - u) + corner[1] * u) * (1 - v) +
           (corner[columns_] * (1 - u) + corner[columns_ + 1] * u) * v;
  }

 private:
  double cell_;
  std::size_t columns_;
  std::vector<double> values_;
};

// Each coefficient of each component by itself, its lowest bits one by one.
std::vector<jpeg_scan_info> one_bit_scans() {
  std::vector<jpeg_scan_info> scans;
  for (int low = 3; low >= 0; --low)
    for (int component = 0; component < 3; ++component)
      for (int k = 0; k < 64; ++k) scans.push_back({1, {component, 0, 0, 0}, k, k, low == 3 ? 0 : low + 1, low});
  return scans;
}

}  // namespace

Image some_picture(int width, int height, int channels, std::uint64_t seed, double detail) {
  constexpr std::uint64_t kOctaves = 7;
  std::vector<Noise> lights, colours;
  for (std::uint64_t octave = 0; octave < kOctaves; ++octave) {
    const double cell = 128.0 / static_cast<double>(1 << octave);
    lights.emplace_back(width, height, cell, seed, octave);
    if (octave < 4) colours.emplace_back(width, height, cell, seed, kOctaves + octave);
  }
  Image image{width, height, channels, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      double light = 120, colour = 0, strength = 200;
      for (std::size_t octave = 0; octave < kOctaves; ++octave, strength *= detail) {
        light += strength * lights[octave].at(x, y);
        if (octave < colours.size()) colour += 0.5 * strength * colours[octave].at(x, y);
      }
      for (int c = 0; c < channels; ++c) {
        const double value = light + (c == 0 ? colour : c == 1 ? -0.4 * colour : c == 2 ? -colour : 40);
        image.pixels.push_back(static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0)));
      }
    }
  }
  return image;
}

std::string jpeg_of(const Image& image, const JpegFile& how) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = image.channels;
  info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : image.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  if (how.inverted_inks) jpeg_set_colorspace(&info, JCS_YCCK);
  jpeg_set_quality(&info, how.quality, TRUE);
  if (image.channels == 3) {
    info.comp_info[0].h_samp_factor = how.across;
    info.comp_info[0].v_samp_factor = how.down;
  }
  if (how.progressive) jpeg_simple_progression(&info);
  std::vector<jpeg_scan_info> scans;
  if (how.scan_each)
    for (int component = 0; component < 3; ++component) scans.push_back({1, {component, 0, 0, 0}, 0, 63, 0, 0});
  if (how.scans_of_one_bit) scans = one_bit_scans();
  if (!scans.empty()) {
    info.scan_info = scans.data();
    info.num_scans = static_cast<int>(scans.size());
  }
  info.restart_interval = static_cast<unsigned>(how.restart);
  jpeg_start_compress(&info, TRUE);
  std::vector<std::uint8_t> pixels = image.pixels;
  const auto row = static_cast<std::size_t>(image.width * image.channels);
  while (info.next_scanline < info.image_height) {
    JSAMPROW line = pixels.data() + info.next_scanline * row;
    jpeg_write_scanlines(&info, &line, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string file(reinterpret_cast<const char*>(memory), size);
  std::free(memory);
  return file;
}

Image decoded_by_libjpeg(const std::string& file) {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&info, TRUE);
  jpeg_start_decompress(&info);
  Image image{static_cast<int>(info.output_width), static_cast<int>(info.output_height), info.output_components, {}};
  const std::size_t row = info.output_width * static_cast<std::size_t>(info.output_components);
  image.pixels.resize(row * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW line = image.pixels.data() + info.output_scanline * row;
    jpeg_read_scanlines(&info, &line, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return image;
}

std::string png_of(const Image& image, const PngFile& how) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::string file;
  png_set_write_fn(
      png, &file,
      [](png_structp writing, png_bytep bytes, std::size_t count) {
        static_cast<std::string*>(png_get_io_ptr(writing))->append(reinterpret_cast<const char*>(bytes), count);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height), how.bits,
               how.type, how.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (how.type == 3) {  // a pixel is the index of a colour of three equal bytes, reversed
    std::vector<png_color> colours(256);
    for (std::size_t i = 0; i < 256; ++i)
      colours[i].red = colours[i].green = colours[i].blue = static_cast<png_byte>(255 - i);
    png_set_PLTE(png, info, colours.data(), 256);
  }
  std::string zeros(how.bomb, '\0');
  if (how.bomb > 0) {
    std::fill(zeros.begin() + 4, zeros.end(), 'x');
    png_text text{};
    text.compression = PNG_TEXT_COMPRESSION_zTXt;
    text.key = const_cast<char*>("bomb");
    text.text = zeros.data() + 4;
    text.text_length = zeros.size() - 4;
    png_set_text(png, info, &text, 1);
  }
  png_write_info(png, info);
  const auto row = static_cast<std::size_t>(image.width * image.channels) * (how.bits == 16 ? 2 : 1);
  std::vector<std::uint8_t> bytes = image.pixels;
  if (how.bits == 16) {
    bytes.clear();
    for (const std::uint8_t byte : image.pixels) {
      bytes.push_back(byte);
      bytes.push_back(static_cast<std::uint8_t>(~byte));
    }
  }
  std::vector<png_bytep> rows;
  for (int y = 0; y < image.height; ++y) rows.push_back(bytes.data() + static_cast<std::size_t>(y) * row);
  png_write_image(png, rows.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

std::string webp_of(const Image& image, bool lossless) {
  std::uint8_t* memory = nullptr;
  const std::uint8_t* pixels = image.pixels.data();
  const int stride = image.width * image.channels;
  std::size_t size = 0;
  if (image.channels == 4) {
    size = lossless ? WebPEncodeLosslessRGBA(pixels, image.width, image.height, stride, &memory)
                    : WebPEncodeRGBA(pixels, image.width, image.height, stride, 80, &memory);
  } else {
    size = lossless ? WebPEncodeLosslessRGB(pixels, image.width, image.height, stride, &memory)
                    : WebPEncodeRGB(pixels, image.width, image.height, stride, 80, &memory);
  }
  std::string file(reinterpret_cast<const char*>(memory), size);
  WebPFree(memory);
  return file;
}

std::string ppm_of(const Image& image) {
  std::string file = fmt::format("P{}\n# made\n{} {}\n255\n", image.channels == 1 ? 5 : 6, image.width, image.height);
  return file.append(reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size());
}

}  // namespace systole
