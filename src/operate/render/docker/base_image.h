#pragma once
// What an image is built on: one of the catalog's list, so that nobody builds on what is another image tomorrow.

#include <string>

#include "operate/render/render.h"

namespace systole {

struct BaseImage {
  std::string reference;          // NAME:TAG[@DIGEST], or NAME@DIGEST
  const ImageRow* row = nullptr;  // null: no list has it
  bool debian = false;            // Debian 12, whose packages Systole's libraries are
};

// What is asked for, else what the workload runs on: tpu, cuda where it has GPUs, else cpu. Errors: of its
// accelerators.
Result<ImageAccelerator> accelerator_of(const RenderAsk& ask);

// Errors: invalid: no list has it, its tag names another image from time to time, or production asks for a digest; with
// those there are.
Result<BaseImage> base_image(const RenderAsk& ask);
// That Systole's own libraries come from.
Result<BaseImage> debian_image(const RenderAsk& ask);

}  // namespace systole
