#pragma once
// The contents of an image with Systole.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operate/render/cluster_job.h"

namespace systole {

// Debian 12 packages of the libraries that the program links or loads later. A test compares them with the program.
std::span<const std::string> runtime_packages();
// Names of the libraries loaded at first use (ground/base/late_library.h).
std::span<const std::string> late_libraries();

// tools/xla-plugins and tools/xla-plugins.txt, as of this build.
std::string_view xla_plugins_script();
std::string_view xla_plugins_pins();

// Needs no job: an image serves any. Errors: invalid: the image's name or base.
Result<Rendered> render_docker(const RenderRequest& ask);

// Adds cloudbuild.yaml and its commands, if the image goes to Artifact Registry. Errors: invalid: not a name there.
Status add_cloud_build(const RenderRequest& ask, const ClusterJob& job, const std::string& dockerfile,
                       Rendered& rendered);

// Of workload: serve. Lines of the Dockerfile: the port, and a check of /health/ready without a program of its own.
std::string health_lines(const Workload& workload);
// Adds compose.yaml, which starts a server of the image with the model in a mounted folder, and its commands. Errors:
// of the hardware, the model's place, and several servers on devices.
Status add_compose(const RenderRequest& ask, ImageAccelerator accelerator, Rendered& rendered);

}  // namespace systole
