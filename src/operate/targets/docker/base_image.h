#pragma once
// The base of an image: one from the catalog's list, so that the base does not change over time.

#include <string>

#include "operate/render/render.h"

namespace systole {

struct BaseImage {
  std::string reference;          // NAME:TAG[@DIGEST], or NAME@DIGEST
  const ImageRow* row = nullptr;  // null: not in a list
  bool debian = false;            // Debian 12, for whose packages Systole's libraries are built
};

// The requested accelerator, otherwise the workload's: tpu, cuda if it has GPUs, otherwise cpu. Errors: of its
// accelerators.
Result<ImageAccelerator> accelerator_of(const RenderRequest& ask);

// Errors: invalid: not in a list, a tag that changes over time, or no digest in production; with the available ones.
Result<BaseImage> base_image(const RenderRequest& ask);
// The image that Systole's own libraries come from.
Result<BaseImage> debian_image(const RenderRequest& ask);

}  // namespace systole
