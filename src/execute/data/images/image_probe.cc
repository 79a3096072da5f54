#include "execute/data/images/image_probe.h"

#include <vector>

#include "ground/base/counted.h"

namespace systole {

Result<ImageProbe> probe_images(std::span<const std::string> files, ImageTransform& transform, Clock& clock,
                                Seconds budget) {
  ImageProbe probe;
  std::vector<float> values(transform.values());
  std::vector<std::string_view> good;
  for (const std::string& file : files) {            // also loads libraries and warms up
    const Result<Image> whole = decode_image(file);  // a crop may leave out what is damaged
    if (!whole.ok()) {
      if (probe.refused++ == 0) probe.first_refused = whole.error().message;
      continue;
    }
    TRY(transform.decode(file, {}, values));
    const ImageHeader header = TRY(read_image_header(file));
    ++probe.formats[name_of(header.format)];
    probe.size += Bytes(static_cast<std::int64_t>(file.size()));
    probe.pixels += header.width * header.height;
    good.push_back(file);
  }
  if (good.empty()) {
    return error(ErrorKind::corrupt, "none of {} is an image that can be decoded; the first: {}",
                 counted(files.size(), "record"), probe.first_refused);
  }
  const Seconds began = clock.now();
  for (std::uint64_t epoch = 1; probe.time < budget; ++epoch) {
    for (std::size_t row = 0; row < good.size() && probe.time < budget; ++row, ++probe.prepared) {
      TRY(transform.decode(good[row], {epoch, row}, values));
      probe.time = clock.now() - began;
    }
  }
  return probe;
}

}  // namespace systole
