#pragma once
// The lock: everything the bits of a run depend on, each by value or hash. A run writes one in its folder (lock.json).
// `systole lock` writes one beside the workload, and `run --locked` refuses each difference by name. Two runs with the
// same lock and the same last step end in the same state; its hash is printed.

#include <map>
#include <string>

#include "ground/base/document.h"
#include "operate/run/plan_run.h"

namespace systole {

inline constexpr const char* kRunLock = "lock.json";  // in a run's folder

// The lock as a document. Reads this program's binary, and the weights that the model begins from. REQUIRES: prepared
// to begin, not to go on. Errors: io.
Result<Node> lock_of(PlannedRun& prepared);

// "job.yaml" → "job.lock". Errors: invalid for standard input.
Result<std::string> lock_path_of(const std::string& workload);

// Errors: not_found with how to create one; invalid, unsupported (a newer version), io.
Result<Node> read_lock(const std::string& path);

// What lock.json in a run's folder records: the key of its dataset, and the hash of the weights it began from. Empty:
// it does not say, or there is no run. Errors: as read_lock.
struct RecordedInputs {
  std::string dataset, weights;
};
Result<RecordedInputs> recorded_inputs(const std::string& folder);
// The hint for a run that goes on although `what` was changed.
std::string begin_anew(const std::string& what, const std::string& folder);
// Refuses model.weights that differ from those the run began from. They may be missing, because its checkpoints have
// them. Reads all of them. Errors: invalid; those of reading.
Status same_weights(const RecordedInputs& begun, const Workload& workload, const std::string& folder);

// The values of a document of nested maps by their keys, as "train.batch"; a sequence is one value.
std::map<std::string, std::string> leaves_of(const Node& document);

// Errors: invalid, with each difference and both values.
Status check_lock(const Node& lock, const Node& now, const std::string& path);

}  // namespace systole
