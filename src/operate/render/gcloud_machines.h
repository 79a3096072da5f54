#pragma once
// Machines in the words of gcloud's commands, and in those of the catalog.

#include <span>
#include <string>
#include <string_view>

#include "describe/spec/workload.h"
#include "ground/catalog/machine_type.h"

namespace systole {

// What resources.accelerators says of `nodes` machines: "a2-highgpu-4g:2", "t4:4" of accelerators that are attached,
// "v4-8". `accelerator` is "type=nvidia-tesla-t4,count=4", NVIDIA_TESLA_T4 with `count`, or a slice's name; empty: the
// machine's own. Empty where the catalog has no such machine, or it has no accelerators.
std::string accelerators_of(std::span<const MachineType> machines, std::string_view machine,
                            std::string_view accelerator, std::int64_t nodes);

// "compute instances", the group of gcloud's commands that makes and deletes them.
std::string_view gcloud_group(GcloudSpec::Create create);

}  // namespace systole
