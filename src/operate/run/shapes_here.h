#pragma once
// Steps of rows of several lengths (data.buckets) in the plan of a run on this machine.

#include <vector>

#include "describe/job/job.h"
#include "describe/spec/plan.h"
#include "operate/run/built_data.h"
#include "operate/run/run_data.h"
#include "predict/perf/estimate.h"

namespace systole {

// The lengths of rows that the data have, for make_job; empty: one, or no data.
std::vector<std::int64_t> row_lengths_of(const Data& data);

// The shapes of a job's steps, and what an epoch of the data has of them; empty: one. `epoch`: null without data.
std::vector<PlannedShape> planned_shapes(const Job& job, const EpochRows* epoch, const Estimate& estimate);

// The shapes of data.buckets, as the rows of an epoch have them; times and work are not known.
std::vector<PlannedShape> epoch_shapes(const Workload& workload, const EpochRows& epoch);

// The training step; of several shapes the mean over an epoch.
ScheduleEstimate mean_step(const Job& job, const Estimate& estimate, std::span<const PlannedShape> shapes);

// Labels of a step: the mean over an epoch; without data, as if no row had padding.
double labels_of_step(const Job& job, const Data& data, std::span<const PlannedShape> shapes);

}  // namespace systole
