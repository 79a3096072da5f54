#pragma once
// The section slurm of a workload. An empty field is unset.

#include <cstdint>
#include <optional>
#include <string>

#include "describe/spec/count_range.h"

namespace systole {

struct SlurmSpec {
  std::string partition, account, qos, constraint, reservation;
  std::string gpu_type;                 // "a100" in --gpus-per-node=a100:8
  std::optional<CountRange> array;      // one run per index, each with its own seed
  std::optional<std::int64_t> at_once;  // limit on concurrent runs of the array
};

}  // namespace systole
