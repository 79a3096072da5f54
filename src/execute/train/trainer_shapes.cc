// The trainer's shapes: what a step of rows of one length takes.

#include <algorithm>

#include "execute/train/trainer.h"

namespace systole {

std::vector<Trainer::Shape> Trainer::shapes_of(const Job& job, Executor& executor) const {
  std::vector<StepRows> rows = job.shapes;
  if (rows.empty()) rows.push_back({0, job.workload.train.batch, job.microbatch_rows, "train", ""});
  std::vector<Shape> shapes;
  for (const StepRows& each : rows) {
    const Schedule& train = job.program->schedule_named(each.schedule);
    shapes.push_back({each.length, each.microbatch_rows, BatchFeeder(executor, each.prefix, parts_.device), &train,
                      ReplayCheck(executor, train)});
  }
  return shapes;
}

Trainer::Shape& Trainer::shape_of(const StepBatch& batch) {
  if (shapes_.size() == 1) return shapes_.front();
  const auto found = std::ranges::find(shapes_, batch.length, &Shape::length);
  CHECK(found != shapes_.end(), "a batch of rows of {}", batch.length);
  return *found;
}

}  // namespace systole
