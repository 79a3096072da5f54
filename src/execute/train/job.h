#pragma once
// From a Workload to what is run: the model, the training Program for a device, and every byte that the process will
// need, by owner. `plan` and `run` both come through here, so that what is planned is what is run.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "describe/graph/partition/training.h"
#include "describe/models/model.h"
#include "describe/spec/workload.h"
#include "execute/runtime/device.h"

namespace systole {

struct Job {
  Workload workload;
  std::unique_ptr<const Model> model;
  std::unique_ptr<const Program> program;
  // batch / microbatches, rounded up; the last is filled with empty rows. Exact: of a logical shard's microbatch.
  std::int64_t microbatch_rows = 0;
  std::int64_t evaluation_rows = 0;  // of a batch of the held-out set; 0: nothing to evaluate
  std::vector<PassRecord> passes;
};

// `rank`: the device of the mesh that the Program is for; all have the same one unless training is exact.
// Errors: invalid (a size that does not work, named), unsupported (a type or op the device does not run).
Result<Job> make_job(const Workload& workload, const Device& device, std::int64_t rank = 0);

Strategy strategy_of(const Workload& workload);

// A string that equals between two jobs exactly when their parameters do: names, shapes, types.
std::string parameters_hash(const Model& model);
// Of everything in the workload that decides the numbers: model, data, train.
std::string numbers_hash(const Workload& workload);

}  // namespace systole
