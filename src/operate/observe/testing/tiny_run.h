#pragma once
// For tests: writes the files of a made-up run into a store.

#include <gtest/gtest.h>

#include "operate/observe/run_files.h"

namespace systole {

inline Plan tiny_plan(const std::string& name) {
  Plan plan;
  plan.workload = read_workload(R"(systole: 1
name: )" + name + R"(
model: { family: mlp, inputs: 4, outputs: 2 }
data: { kind: linear, rows: 64 }
train: { batch: 8, steps: 4, optimizer: { kind: sgd, rate: 0.1 } }
)",
                                "tiny")
                      .value();
  plan.program.parameters = 10;
  plan.program.executed_flops = Flops(1000);
  plan.memory = {{{"parameters", Bytes(40)}, {"libraries", Bytes(60)}}, Bytes(40), Bytes(200)};
  plan.time.steps = 4;
  plan.time.step[Category::compute] = Seconds(1.0);
  plan.time.run[Category::compute] = Seconds(4.0);
  return plan;
}

inline Event opened_event(const std::string& run, const std::string& at, std::int64_t from_step = 0) {
  Opened opened;
  opened.run = run;
  opened.at = at;
  opened.from_step = from_step;
  return {Seconds(0), opened};
}

inline Event step_event(std::int64_t number, double loss) {
  StepEnded step;
  step.step = number;
  step.loss = loss;
  step.tokens = 8 * number;
  step.seconds[Category::compute] = Seconds(1.25);
  step.seconds[Category::data_wait] = Seconds(0.5);
  return {Seconds(1.75 * static_cast<double>(number)), step};
}

inline void write_events(Store& store, const std::string& path, const std::vector<Event>& events) {
  std::string text;
  for (const Event& event : events) text += to_json_line(event);
  write_whole(store, path, text).value();
}

// A run with one process that ended.
inline void write_tiny_run(Store& store, const std::string& dir, const std::string& name, const std::string& at) {
  store.make_dirs(inside(dir, RunFiles::events)).value();
  write_whole(store, inside(dir, RunFiles::plan), to_json(tiny_plan(name))).value();
  Stopped stopped;
  stopped.reason = "finished";
  stopped.step = 2;
  write_events(store, inside(dir, "events/000.jsonl"),
               {opened_event(name, at),
                step_event(1, 3.0),
                step_event(2, 2.0),
                {Seconds(4), Evaluated{2, 2.5, 1.5, 10, 20}},
                {Seconds(5), stopped}});
}

}  // namespace systole
