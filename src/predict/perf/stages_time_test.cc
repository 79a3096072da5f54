#include "predict/perf/stages_time.h"

#include <gtest/gtest.h>

#include "describe/ops/ops.h"
#include "describe/partition/pipeline.h"

namespace systole {
namespace {

// Stages with given times of functions, in the schedule of a pipeline; receiving a transfer takes `delay`.
struct MadeUpStages {
  std::vector<Program> programs;
  std::vector<Estimate> estimates;
  std::vector<StageOfTime> stages;
};

MadeUpStages made_up(const PipelineStrategy& strategy, int microbatches, double forward, double backward,
                     double delay) {
  MadeUpStages made;
  const auto rows = pipeline_rows(strategy, microbatches);
  for (int s = 0; s < strategy.stages; ++s) {
    Program program;
    Schedule schedule{"train", {}};
    ScheduleEstimate estimate;
    estimate.name = "train";
    std::vector<Seconds> of_functions;
    const auto function = [&](const std::string& name, int by, bool sends, double time) {
      for (std::size_t f = 0; f < program.functions.size(); ++f) {
        if (program.functions[f].name != name) continue;
        estimate.by_function[f].second += Seconds(time);
        return static_cast<int>(f);
      }
      Function made_function;
      made_function.name = name;
      Graph& g = made_function.graph;
      const Type type(DType::f32, {4});
      if (by != 0) {
        g.output("y", sends ? send(g.input("x", type), kPipelineAxis, strategy.stages, by)
                            : receive(g, type, kPipelineAxis, strategy.stages, by));
      }
      program.functions.push_back(std::move(made_function));
      estimate.by_function.emplace_back(name, Seconds(time));
      of_functions.emplace_back(time);
      return static_cast<int>(program.functions.size()) - 1;
    };
    for (const PipelineRow& row : rows[static_cast<std::size_t>(s)]) {
      const bool f = row.step.forward;
      const int by = f ? 1 : -1;
      using Kind = PipelineRow::Kind;
      const int index = row.kind == Kind::step ? function(f ? "forward" : "backward", 0, false, f ? forward : backward)
                        : row.kind == Kind::send ? function(f ? "send" : "send_back", by, true, 0)
                                                 : function(f ? "receive" : "receive_back", by, false, delay);
      const bool step = row.kind == Kind::step;
      schedule.actions.push_back(
          {index, row.step.chunk, row.step.microbatch, step ? Stream::compute : Stream::network, {}});
      // A step waits for its receive, and a send waits for its step.
      const int last = static_cast<int>(schedule.actions.size()) - 1;
      if (last > 0 && schedule.actions.back().stream != schedule.actions[static_cast<std::size_t>(last) - 1].stream)
        schedule.actions.back().waits.push_back(last - 1);
    }
    estimate.time = Seconds(microbatches * strategy.chunks_per_stage * (forward + backward));
    program.schedules.push_back(std::move(schedule));
    made.programs.push_back(std::move(program));
    made.estimates.push_back({});
    made.estimates.back().schedules.push_back(std::move(estimate));
    made.estimates.back().of_functions = std::move(of_functions);
  }
  for (std::size_t s = 0; s < made.programs.size(); ++s) made.stages.push_back({&made.programs[s], &made.estimates[s]});
  return made;
}

// The papers' bubbles: stages - 1 forwards and backwards, of a chunk if interleaved (schedule/pipeline_time_test.cc).
TEST(StagesTime, bubble) {
  for (const int stages : {2, 4, 8}) {
    for (const int chunks : {1, 2}) {
      const MadeUpStages made = made_up({.stages = stages, .chunks_per_stage = chunks}, 2 * stages, 1, 2, 0);
      const double time = time_of_stages(made.stages, "train", false).count();
      EXPECT_DOUBLE_EQ(time, 3.0 * (2 * stages * chunks + stages - 1)) << stages << " " << chunks;
    }
  }
}

TEST(StagesTime, what_is_handed_on_takes_time) {
  const MadeUpStages made = made_up({.stages = 2}, 1, 1, 2, 0.25);
  EXPECT_DOUBLE_EQ(time_of_stages(made.stages, "train", false).count(), 6.5);
  const Estimate first = among_stages(made.stages, 0, false);
  EXPECT_DOUBLE_EQ(first.schedules[0].time.count(), 6.5);
  EXPECT_EQ(first.schedules[0].by_function.back().first, "stages");
  EXPECT_DOUBLE_EQ(first.schedules[0].by_function.back().second.count(), 3.5);
}

// Slower is never faster, whichever stage it is.
TEST(StagesTime, a_slower_step_is_never_faster) {
  double last = 0;
  for (const double forward : {0.5, 1.0, 1.5, 2.0}) {
    const MadeUpStages made = made_up({.stages = 4}, 8, forward, 2, 0.1);
    const double time = time_of_stages(made.stages, "train", true).count();
    EXPECT_GT(time, last);
    last = time;
  }
}

}  // namespace
}  // namespace systole
