#pragma once
// Makes a job for a local device, and hashes that tell whether two jobs are the same.

#include <span>
#include <string>

#include "describe/job/job.h"
#include "execute/runtime/device.h"

namespace systole {

// `rank`, `lengths`: as in describe/job.
// Errors: invalid (a size that does not work, named), unsupported (a type or op that the device cannot run).
Result<Job> make_job(const Workload& workload, const Device& device, std::int64_t rank = 0,
                     std::span<const std::int64_t> lengths = {});

// Equal for two jobs exactly if their parameters are: names, shapes, types.
std::string parameters_hash(const Model& model);
// The parts of the workload that decide the numbers: model, data, train; not how long it trains.
Workload numbers_of(const Workload& workload);
// The hash of numbers_of.
std::string numbers_hash(const Workload& workload);

}  // namespace systole
