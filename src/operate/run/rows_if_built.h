#pragma once
// The rows of a workload's text, on this machine or in buckets, where its dataset is built already.

#include <optional>

#include "operate/run/built_data.h"

namespace systole {

// Of the files of a build, as the other find_like_data: by their names and sizes. Failure: one whose size cannot be
// told.
std::optional<BuiltData> find_like_data(const Workload& workload, const BuildOptions& options);

// Nothing: it is not built, or cannot be read.
std::optional<EpochRows> rows_if_built(const Workload& workload, const WorkloadSource& source);

}  // namespace systole
