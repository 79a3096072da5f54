#pragma once
// Translates machines between gcloud's flags and the catalog.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "describe/spec/workload.h"
#include "ground/catalog/machine_type.h"

namespace systole {

// The value of resources.accelerators for `nodes` machines: "a2-highgpu-4g:2", "t4:4" for attached accelerators,
// "v4-8". `accelerator` is "type=nvidia-tesla-t4,count=4" (the type may also be NVIDIA_TESLA_T4), or a slice's name;
// empty: the machine's own. Empty result: the catalog has no such machine, or it has no accelerators.
std::string accelerators_of(std::span<const MachineType> machines, std::string_view machine,
                            std::string_view accelerator, std::int64_t nodes);

struct GcloudAccelerators {
  std::string name;        // "a2-highgpu-4g", "t4", "v4-8"; empty: none
  std::int64_t count = 0;  // 0: contained in the name
};
// The same as separate fields.
GcloudAccelerators gcloud_accelerators(std::span<const MachineType> machines, std::string_view machine,
                                       std::string_view accelerator, std::int64_t nodes);

// "compute instances": the gcloud command group that creates and deletes them.
std::string_view gcloud_group(GcloudSpec::Create create);

}  // namespace systole
