#pragma once
// What an image of Systole is made of.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operate/render/cluster_job.h"

namespace systole {

// Debian 12's packages of the libraries that the program is linked with or loads later. A test holds them to the
// program.
std::span<const std::string> runtime_packages();
// Loaded when they are first needed (ground/base/late_library.h), by their names.
std::span<const std::string> late_libraries();

// tools/xla-plugins and tools/xla-plugins.txt when Systole was built.
std::string_view xla_plugins_script();
std::string_view xla_plugins_pins();

// cloudbuild.yaml and its commands, where the image goes to Artifact Registry. Errors: invalid: no name of one there.
Status add_cloud_build(const RenderAsk& ask, const ClusterJob& job, const std::string& dockerfile, Rendered& rendered);

}  // namespace systole
