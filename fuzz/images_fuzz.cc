// Images (execute/data/images): whatever the bytes are, decoding ends in an image or an Error, and the part that a crop
// needs is then that of the image.

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "execute/data/images/transform.h"

namespace {

using namespace systole;

// A file that is damaged below the crop may be decoded by one and not by the other.
void transform_both_ways(std::string_view file, RowOfEpoch row) {
  static ImageTransform transform =
      ImageTransform::create({.width = 24, .height = 20, .layout = ImageLayout::hwc}).value();
  std::vector<float> part(transform.values()), whole(transform.values());
  const bool of_part = transform.decode(file, row, part, {.pixels = 1 << 16}).ok();
  const Result<Image> image = decode_image(file, {.pixels = 1 << 16});
  if (!image.ok()) return;
  if (!of_part) std::abort();
  transform.apply(*image, row, whole);
  if (part != whole) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  for (std::uint64_t row = 0; row < 3; ++row) transform_both_ways(file, {size, row});
  return 0;
}
