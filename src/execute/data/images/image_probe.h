#pragma once
// Measures how many images a second one thread makes ready for a model: the same decoder and transform as elsewhere.

#include <map>
#include <span>
#include <string>

#include "execute/data/images/transform.h"
#include "ground/base/clock.h"
#include "ground/base/units.h"

namespace systole {

struct ImageProbe {
  std::map<std::string, std::int64_t> formats;  // how many files of each name_of(ImageFormat)
  Bytes size;                                   // of the files that are decoded
  std::int64_t pixels = 0;                      // of them
  std::int64_t refused = 0;
  std::string first_refused;  // why
  std::int64_t prepared = 0;  // images, each file perhaps often
  Seconds time;               // for these
};

// Goes through the files, and again and again until `budget` is over. Errors: corrupt, if no file can be decoded.
Result<ImageProbe> probe_images(std::span<const std::string> files, ImageTransform& transform, Clock& clock,
                                Seconds budget);

}  // namespace systole
