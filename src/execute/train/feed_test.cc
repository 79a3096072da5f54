#include "execute/train/feed.h"

#include <gtest/gtest.h>

#include "describe/spec/small_workload.h"
#include "execute/backends/reference/reference.h"
#include "execute/train/job.h"

namespace systole {
namespace {

// What a stage of a pipeline does not take may be another's; what it takes must be there.
TEST(Feed, a_stage_misses_what_it_takes) {
  WorkloadOptions options;
  options.sets = {"mesh={pipe: 2}", "train.precision=f32", "train.microbatches=2"};
  const std::unique_ptr<Device> device = make_reference_device();
  const Job job = make_job(read(kSmall, options), *device).value();
  const std::unique_ptr<Executor> executor = Executor::prepare(*job.program, *device).value();
  const std::vector<std::int32_t> rows(4 * 32, 1);
  StepBatch batch;
  batch.rows = 4;
  for (const std::string_view name : {"tokenz", "labels"})
    batch.inputs.push_back({name, std::as_bytes(std::span(rows)), 32 * 4});
  const Status done = Feed(*executor, "").put(batch, 0);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().message, "the program 'small' takes 'tokens', and a batch has tokenz, labels");
}

}  // namespace
}  // namespace systole
