#pragma once
// The lock: what the bits of a run depend on, each by its value or hash. A run leaves one in its folder (lock.json);
// `systole lock` writes one beside the workload, and `run --locked` refuses what differs from it, by name. With the
// same lock a run that ends at a step ends in the same state, whose hash it prints.

#include <string>

#include "ground/base/document.h"
#include "operate/cli/session.h"

namespace systole::cli {

inline constexpr const char* kRunLock = "lock.json";  // in a run's folder

// As a document. Reads this program, and the weights that the model begins from. REQUIRES: prepared to begin, not to go
// on. Errors: io.
Result<Node> lock_of(Prepared& prepared);

// "job.yaml" → "job.lock". Errors: invalid for standard input.
Result<std::string> lock_path_of(const std::string& workload);

// Errors: not_found with how to make one; invalid, unsupported (a newer version), io.
Result<Node> read_lock(const std::string& path);

// What lock.json says of the run in a folder: the key of its dataset, and the hash of the weights it began from. Empty
// where it says nothing, or there is no run. Errors: as read_lock.
struct BegunWith {
  std::string dataset, weights;
};
Result<BegunWith> begun_with(const std::string& folder);
// The hint where `what` of a run that goes on was changed since.
std::string begin_anew(const std::string& what, const std::string& folder);
// Refuses other weights in model.weights than the run began from; its checkpoints know them, so they may be gone.
// Reads them all. Errors: invalid; those of reading.
Status same_weights(const BegunWith& begun, const Workload& workload, const std::string& folder);

// Errors: invalid, naming each thing that differs and both values.
Status check_lock(const Node& lock, const Node& now, const std::string& path);

}  // namespace systole::cli
