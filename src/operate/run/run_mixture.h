#pragma once
// The data of a workload with data.mixture: each source as a dataset, and the mixture of them.

#include <memory>
#include <string>
#include <vector>

#include "execute/data/mixture.h"
#include "operate/run/bucket_files.h"
#include "operate/run/run_data.h"

namespace systole {

// The workloads of the sources, each with the source's text as data.train; of the first, with the tokenizer's file too.
std::vector<Workload> workloads_of_sources(const Workload& workload);

// Opens or builds the sources' datasets, after the tokenizer in common. `folder`: the store of data.folder. Errors:
// those of prepare_data, naming the source.
Result<JoinedDatasets> prepare_mixture(const Workload& workload, BucketFiles& files, Store& folder,
                                       const WorkloadSource& source, const DataRequest& request);

Result<MixtureInputs> mixture_inputs_of(const Workload& workload, BucketFiles& files, const WorkloadSource& source);

// The rows of so many steps; at most what an integer holds.
std::int64_t rows_of_steps(const Workload& workload, std::int64_t steps);
// The steps that training takes if their number is known, in rows.
std::optional<std::int64_t> rows_of_run(const Workload& workload);
// Refuses a run of more steps than the mixture has rows for, and one of an unknown number of steps if the rows end.
// Errors: invalid, with the steps there are.
Status check_mixture_lasts(const Workload& workload, const Data& data, const WorkloadSource& source);

}  // namespace systole
