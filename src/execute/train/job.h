#pragma once
// A job on a device that is here, and by what two jobs are the same.

#include <string>

#include "describe/job/job.h"
#include "execute/runtime/device.h"

namespace systole {

// `rank`: as in describe/job. Errors: invalid (a size that does not work, named), unsupported (a type or op the device
// does not run).
Result<Job> make_job(const Workload& workload, const Device& device, std::int64_t rank = 0);

// A string that equals between two jobs exactly when their parameters do: names, shapes, types.
std::string parameters_hash(const Model& model);
// Everything in the workload that decides the numbers, alone: model, data, train; not how long.
Workload numbers_of(const Workload& workload);
// Of that.
std::string numbers_hash(const Workload& workload);

}  // namespace systole
