#pragma once
// Parts of prepare_data that a mixture's sources need too. Private to run_data and run_mixture.

#include <memory>
#include <optional>
#include <string>

#include "ground/store/lock.h"
#include "operate/run/bucket_files.h"
#include "operate/run/run_data.h"

namespace systole {

// How a dataset is built of data.train and what belongs to it. `run`: the folder of a run that goes on; otherwise
// empty. `source_name`: of a mixture's source, whose text is data.train of `workload`; empty: of data.train itself.
// REQUIRES: the data is text. The result borrows `files`. Errors: those of check_data_files.
Result<BuildOptions> build_options(const Workload& workload, BucketFiles& files, const WorkloadSource& source,
                                   const std::string& run = {}, const std::string& source_name = {});

// Files of this machine, and objects through the workload's cache.
Result<std::unique_ptr<BucketFiles>> data_files(const Workload& workload, const DataProgress& progress);

// The lock for building in the folder, after its current holder has finished or died.
Result<std::unique_ptr<FileLock>> lock_in_turn(const std::string& folder, const DataRequest& request);

// Forks a child, which dies with this process: nothing in the child, which does its work and ends by _exit. Here, when
// the child has ended: whether there was one. REQUIRES: no other threads, and no connections that a child would share.
std::optional<bool> ended_child(const DataProgress& progress);

// Complete datasets are opened by any number of processes at once; one process at a time builds in a folder.
Result<Dataset> open_or_build(Store& store, const std::string& folder, const std::string& key, BuildOptions& options,
                              const DataRequest& request);

}  // namespace systole
