#include "predict/perf/predicted_peak.h"

#include <gtest/gtest.h>

#include "describe/partition/fused_step.h"
#include "describe/spec/workload.h"
#include "execute/backends/null/null.h"
#include "execute/train/training_job.h"
#include "predict/perf/compiled_peak.h"

namespace systole {
namespace {

Job line_job(bool whole_steps) {
  const Workload workload = read_workload(R"(systole: 1
name: line
model: { family: mlp, inputs: 3, outputs: 2 }
data: { kind: linear, rows: 64 }
train: { batch: 4, steps: 4, optimizer: { kind: sgd, rate: 0.05 } }
)",
                                          "job.yaml", {})
                                .value();
  Target target;
  target.kind = "xla";
  target.whole_steps = whole_steps;
  target.dtypes = {DType::f32, DType::bf16};
  return make_job(workload, *make_null_device(target)).value();
}

TEST(PredictedPeak, of_a_chip_whose_compiler_is_known) {
  const Job job = line_job(true);
  const Program& program = *job.program;
  const CompiledPeak peak =
      compiled_peak(program, program.function_named(kStepFunction), layout_of_compiler("tpu", "v5e"));
  EXPECT_EQ(
      predicted_peak_text("tpu", "v5e", program, Bytes(3 << 20)),
      fmt::format("predicted of the compiler: {} a device, {} of them temporaries; it took 3.00 MiB of temporaries",
                  to_string(peak.needed()), to_string(peak.temporaries)));
  EXPECT_TRUE(predicted_peak_text("gpu", "h100", program, Bytes(0)));
  EXPECT_FALSE(predicted_peak_text("xla-cpu", "cpu-avx2", program, Bytes(0)));
  EXPECT_FALSE(predicted_peak_text("tpu", "v5e", *line_job(false).program, Bytes(0))) << "no step that is one function";
}

}  // namespace
}  // namespace systole
