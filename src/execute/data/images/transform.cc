#include "execute/data/images/transform.h"

#include <algorithm>
#include <cmath>

#include "ground/base/hash.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

constexpr int kTries = 10;  // for a box that lies in the image

int rounded(double value) { return static_cast<int>(std::nearbyint(value)); }  // half to even, as Python

std::uint64_t key_of(const ImageTransformOptions& options, std::uint64_t epoch) {
  return hash64("systole images", options.seed) ^ epoch;
}

// The largest box of a good ratio in the middle.
PixelBox fallback(const ImageTransformOptions& options, int width, int height) {
  const double ratio = static_cast<double>(width) / height;
  PixelBox box{0, 0, width, height};
  if (ratio < options.ratio[0]) box.height = std::clamp(rounded(width / options.ratio[0]), 1, height);
  if (ratio > options.ratio[1]) box.width = std::clamp(rounded(height * options.ratio[1]), 1, width);
  box.x = (width - box.width) / 2;
  box.y = (height - box.height) / 2;
  return box;
}

PixelBox random_box(const ImageTransformOptions& options, int width, int height, RowOfEpoch row) {
  const double area = static_cast<double>(width) * height;
  const double low = std::log(options.ratio[0]), high = std::log(options.ratio[1]);
  for (std::uint64_t attempt = 0; attempt < kTries; ++attempt) {
    const PhiloxBlock bits = philox(key_of(options, row.epoch), philox_counter(attempt + 1, row.row));
    const auto uniform = [&](std::size_t i) { return static_cast<double>(bits[i]) * 0x1p-32; };
    const double target = area * (options.scale[0] + (options.scale[1] - options.scale[0]) * uniform(0));
    const double ratio = std::exp(low + (high - low) * uniform(1));
    const int w = rounded(std::sqrt(target * ratio)), h = rounded(std::sqrt(target / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    return {static_cast<int>(uniform(2) * (width - w + 1)), static_cast<int>(uniform(3) * (height - h + 1)), w, h};
  }
  return fallback(options, width, height);
}

}  // namespace

ChosenCrop choose_crop(const ImageTransformOptions& options, int width, int height, RowOfEpoch row) {
  if (options.crop != ImageCrop::random) return {{0, 0, width, height}, false};
  const PhiloxBlock bits = philox(key_of(options, row.epoch), philox_counter(0, row.row));
  return {random_box(options, width, height, row), static_cast<double>(bits[0]) * 0x1p-32 < options.flip};
}

Result<ImageTransform> ImageTransform::create(const ImageTransformOptions& options) {
  const auto wrong = [](const char* what) { return error(ErrorKind::invalid, "images: {}", what); };
  constexpr int kLargest = 16384;
  if (options.width < 1 || options.height < 1 || options.width > kLargest || options.height > kLargest)
    return wrong("width and height are 1 to 16384");
  if (options.crop == ImageCrop::centre &&
      (options.shorter < std::max(options.width, options.height) || options.shorter > kLargest))
    return wrong("shorter is at least the width and height that are cut out of it, and at most 16384");
  if (!(options.scale[0] > 0 && options.scale[0] <= options.scale[1] && options.scale[1] <= 1))
    return wrong("scale is a range in (0, 1]");
  if (!(options.ratio[0] > 0 && options.ratio[0] <= options.ratio[1] && std::isfinite(options.ratio[1])))
    return wrong("ratio is a range of positive numbers");
  if (!(options.flip >= 0 && options.flip <= 1)) return wrong("flip is a probability");
  for (const float deviation : options.deviation)
    if (!(deviation > 0)) return wrong("deviation is positive");
  return ImageTransform(options);
}

ImageTransform::ImageTransform(const ImageTransformOptions& options) : options_(options) {
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t byte = 0; byte < 256; ++byte)
      normal_[c][byte] = (static_cast<float>(byte) / 255.0F - options.mean[c]) / options.deviation[c];
  image_.channels = 4;
}

PixelBox ImageTransform::plan(int width, int height, RowOfEpoch row) {
  chosen_ = choose_crop(options_, width, height, row);
  const PixelBox& box = chosen_.box;
  int to_width = options_.width, to_height = options_.height, left = 0, top = 0;
  if (options_.crop == ImageCrop::centre) {
    const std::int64_t longer = std::int64_t{options_.shorter} * std::max(width, height) / std::min(width, height);
    to_width = width <= height ? options_.shorter : static_cast<int>(longer);
    to_height = width <= height ? static_cast<int>(longer) : options_.shorter;
    left = rounded((to_width - options_.width) / 2.0);
    top = rounded((to_height - options_.height) / 2.0);
  }
  make_taps(box.width, to_width, left, options_.width, columns_);
  make_taps(box.height, to_height, top, options_.height, lines_);
  return {box.x + columns_.begin(), box.y + lines_.begin(), columns_.end() - columns_.begin(),
          lines_.end() - lines_.begin()};
}

void ImageTransform::finish(const Image& part, const PixelBox& held, std::span<float> into) {
  resample({part.pixels.data(), held.width}, chosen_.box.x - held.x, chosen_.box.y - held.y, columns_, lines_, between_,
           resized_);
  const auto width = static_cast<std::size_t>(options_.width), height = static_cast<std::size_t>(options_.height);
  const bool planes = options_.layout == ImageLayout::chw;
  const std::size_t pixel = planes ? 1 : 3, plane = planes ? width * height : 1;
  for (std::size_t y = 0; y < height; ++y) {
    const std::uint8_t* from = resized_.data() + 4 * y * width;
    for (std::size_t c = 0; c < 3; ++c) {
      const std::array<float, 256>& normal = normal_[c];
      float* to = into.data() + c * plane + y * width * pixel;
      if (chosen_.flipped) {
        for (std::size_t x = 0; x < width; ++x) to[x * pixel] = normal[from[4 * (width - 1 - x) + c]];
      } else {
        for (std::size_t x = 0; x < width; ++x) to[x * pixel] = normal[from[4 * x + c]];
      }
    }
  }
}

Status ImageTransform::decode(std::string_view file, RowOfEpoch row, std::span<float> into, const ImageLimits& limits) {
  CHECK(into.size() == values(), "{} values for {}", into.size(), values());
  const ImageHeader header = TRY(header_within(file, limits));
  const PixelBox wanted = plan(static_cast<int>(header.width), static_cast<int>(header.height), row);
  const PixelBox held = TRY(decode_part({file, header, wanted}, image_));
  finish(image_, held, into);
  return {};
}

void ImageTransform::apply(const Image& image, RowOfEpoch row, std::span<float> into) {
  CHECK(into.size() == values(), "{} values for {}", into.size(), values());
  plan(image.width, image.height, row);
  image_.pixels = with_four_channels(image);
  finish(image_, {0, 0, image.width, image.height}, into);
}

}  // namespace systole
