#include "operate/run/shapes_here.h"

#include <algorithm>
#include <cmath>

namespace systole {

std::vector<std::int64_t> row_lengths_of(const Data& data) {
  if (!data.dataset || data.dataset->train->packing.policy != PackingPolicy::bucketed) return {};
  return data.dataset->train->packing.edges();
}

static void count_epoch(const Workload& workload, const Bucket& bucket, PlannedShape& shape) {
  shape.epoch_steps = steps_of(workload, bucket);
  const double taken = workload.data.drop_remainder
                           ? static_cast<double>(shape.epoch_steps * shape.rows) / static_cast<double>(bucket.rows)
                           : 1;
  shape.epoch_tokens = std::llround(static_cast<double>(bucket.tokens) * taken);
}

std::vector<PlannedShape> epoch_shapes(const Workload& workload, const EpochRows& epoch) {
  std::vector<PlannedShape> shapes;
  for (const Bucket& bucket : epoch.buckets) {
    const std::int64_t rows = rows_of_bucket(workload.train.batch, workload.model.context(), bucket.edge);
    count_epoch(workload, bucket, shapes.emplace_back(PlannedShape{.length = bucket.edge, .rows = rows}));
  }
  return shapes;
}

std::vector<PlannedShape> planned_shapes(const Job& job, const EpochRows* epoch, const Estimate& estimate) {
  std::vector<PlannedShape> shapes;
  for (const StepRows& rows : job.shapes) {
    shapes.push_back({.length = rows.length, .rows = rows.rows});
    if (!estimate.unknown) shapes.back().step = estimate.schedule_named(rows.schedule).time;
  }
  if (epoch == nullptr || epoch->buckets.empty()) return shapes;
  for (std::size_t b = 0; b < shapes.size(); ++b) count_epoch(job.workload, epoch->buckets[b], shapes[b]);
  return shapes;
}

ScheduleEstimate mean_step(const Job& job, const Estimate& estimate, std::span<const PlannedShape> shapes) {
  if (shapes.empty()) return estimate.schedule_named("train");
  const std::vector<double> shares = step_shares(shapes);
  ScheduleEstimate mean;
  mean.name = "train";
  double model_flops = 0;
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const ScheduleEstimate& one = estimate.schedule_named(job.shapes[s].schedule);
    mean.time += one.time * shares[s];
    for (int c = 0; c < kNumOpClasses; ++c) {
      const auto op_class = static_cast<OpClass>(c);
      mean.busy[op_class] += one.busy[op_class] * shares[s];
    }
    for (const auto& [function, time] : one.by_function) {
      const auto known = std::ranges::find(mean.by_function, function, [](const auto& of) { return of.first; });
      if (known != mean.by_function.end())
        known->second += time * shares[s];
      else
        mean.by_function.emplace_back(function, time * shares[s]);
    }
    model_flops += shares[s] * static_cast<double>(one.work.model_flops);
    mean.matmul_type = one.matmul_type;
  }
  mean.work.model_flops = std::llround(model_flops);
  return mean;
}

double labels_of_step(const Job& job, const Data& data, std::span<const PlannedShape> shapes) {
  const auto batch = static_cast<double>(job.workload.train.batch);
  if (!data.dataset) return batch * static_cast<double>(job.model->sequence_length());
  std::int64_t steps = 0, tokens = 0;
  for (const PlannedShape& shape : shapes) {
    steps += shape.epoch_steps;
    tokens += shape.epoch_tokens;
  }
  if (steps > 0) return static_cast<double>(tokens) / static_cast<double>(steps);
  const Packing& rows = data.dataset->train->packing;
  return batch * static_cast<double>(rows.tokens) / static_cast<double>(std::max<std::int64_t>(1, rows.rows()));
}

}  // namespace systole
