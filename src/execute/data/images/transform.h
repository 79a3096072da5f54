#pragma once
// From an image's file to the numbers that a model takes: cropped, resized, perhaps flipped, normalised to f32. The
// steps and their order are those of torchvision's RandomResizedCrop, Resize and CenterCrop, RandomHorizontalFlip,
// ToTensor and Normalize on images of Pillow; of a JPEG only what the crop needs is decoded.
//
// Random choices are a pure function of (seed, epoch, row), by Philox: threads, ranks and resumes change nothing.

#include <array>
#include <cstdint>
#include <span>

#include "execute/data/images/decoders.h"
#include "execute/data/images/resample.h"

namespace systole {

enum class ImageCrop {
  none,    // the whole image, whatever its proportions
  centre,  // the shorter side becomes `shorter`, then the centre is taken
  random,  // a part of random area and proportions
};
enum class ImageLayout { chw, hwc };

struct ImageTransformOptions {
  int width = 224, height = 224;
  ImageCrop crop = ImageCrop::random;
  int shorter = 256;
  std::array<double, 2> scale{0.08, 1.0};         // of the area; uniform
  std::array<double, 2> ratio{3.0 / 4, 4.0 / 3};  // width to height; its logarithm is uniform
  double flip = 0.5;                              // the probability, of random crops only
  std::array<float, 3> mean{0.485F, 0.456F, 0.406F}, deviation{0.229F, 0.224F, 0.225F};  // of ImageNet, of [0, 1]
  ImageLayout layout = ImageLayout::chw;
  std::uint64_t seed = 0;
};

struct RowOfEpoch {
  std::uint64_t epoch = 0, row = 0;
};

struct ChosenCrop {
  PixelBox box;
  bool flipped = false;
};
// REQUIRES: width and height are at least 1.
ChosenCrop choose_crop(const ImageTransformOptions& options, int width, int height, RowOfEpoch row);

// One thread at a time: it keeps its memory.
class ImageTransform {
 public:
  // Errors: invalid, with the option.
  static Result<ImageTransform> create(const ImageTransformOptions& options);

  // 3 x height x width, or height x width x 3.
  std::size_t values() const {
    return 3 * static_cast<std::size_t>(options_.width) * static_cast<std::size_t>(options_.height);
  }
  // Gray is repeated to three channels. A JPEG that is damaged below its crop is not found to be. REQUIRES: into.size()
  // == values(). Errors: those of decode_image.
  Status decode(std::string_view file, RowOfEpoch row, std::span<float> into, const ImageLimits& limits = {});
  // The same of an image that is decoded.
  void apply(const Image& image, RowOfEpoch row, std::span<float> into);

 private:
  explicit ImageTransform(const ImageTransformOptions& options);
  PixelBox plan(int width, int height, RowOfEpoch row);  // which pixels are needed
  void finish(const Image& part, const PixelBox& held, std::span<float> into);

  ImageTransformOptions options_;
  std::array<std::array<float, 256>, 3> normal_;  // of each channel and byte
  Image image_;
  ResampleTaps columns_, lines_;
  std::vector<std::uint8_t> between_, resized_;
  ChosenCrop chosen_;
};

}  // namespace systole
