#pragma once
// `systole data probe FILE --image FIELD`: part of data_probe.cc.

#include <string>

#include "operate/cli/command.h"

namespace systole::cli {

struct ImageProbeOptions {
  std::string field;  // empty: not asked for
  std::int64_t size = 224;
};

// Of a file of images that is named as a workload. Throws Failure: invalid, with the field to name; those of
// open_named_records.
void refuse_records(const std::string& file);

ExitCode probe_images_of(const std::string& file, const ImageProbeOptions& options, Seconds time, Context& context);

}  // namespace systole::cli
