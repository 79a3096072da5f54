#pragma once
// The section gcloud of a workload. An empty field is unset.

#include <map>
#include <string>

namespace systole {

// Machines that gcloud creates, in the terms of its command line; names are passed unchanged.
struct GcloudSpec {
  enum class Create { nothing, instances, tpu_vm, node_pool, cluster } create = Create::nothing;
  std::string name, project, zone;             // zone: a zone or a region
  std::string machine, accelerator;            // "a2-highgpu-4g", "type=nvidia-tesla-a100,count=4", "v4-8"
  std::map<std::string, std::string> options;  // further options, without their dashes; empty value: a flag
};

}  // namespace systole
