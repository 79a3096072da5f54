// Predicted against measured: training steps of small gpts, whole and by op, on the cpu backend, with this machine's
// catalog entry (from `systole calibrate`). Shapes are drawn from a seed: SYSTOLE_TEST_SEED=n, SHAPES=n of them.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <random>
#include <span>

#include "execute/runtime/initialize.h"
#include "execute/train/training_job.h"
#include "operate/run/plan_run.h"
#include "predict/perf/estimate.h"
#include "predict/perf/op_time.h"

namespace systole::laws {
namespace {

using Times = std::map<std::string, Seconds>;

struct Shape {
  int layers, heads, width, context, batch, vocabulary;
  const char* precision;
};

std::string to_text(const Shape& s) {
  return fmt::format("{} layers of {}, {} heads, {} x {}, {} tokens, {}", s.layers, s.width, s.heads, s.batch,
                     s.context, s.vocabulary, s.precision);
}

Shape draw(std::mt19937& random) {
  const auto of = [&](std::initializer_list<int> list) { return list.begin()[random() % list.size()]; };
  const int width = of({128, 192, 256, 384, 512, 768});
  return {of({2, 3, 4, 6}),
          width / of({32, 64}),
          width,
          of({128, 256, 512}),
          of({2, 4, 8}),
          of({1024, 2048, 8192}),
          of({0, 1}) == 0 ? "bf16" : "f32"};
}

Workload workload_of(const Shape& s) {
  return read_workload(
             fmt::format("systole: 1\nname: bench\n"
                         "model: {{ family: gpt, layers: {}, width: {}, heads: {}, context: {}, vocabulary: {} }}\n"
                         "data: {{ train: {{ files: text }}, tokenizer: {{ vocabulary: {} }} }}\n"
                         "train: {{ batch: {}, steps: 1, precision: {}, optimizer: {{ rate: 1e-4 }} }}\n",
                         s.layers, s.width, s.heads, s.context, s.vocabulary, s.vocabulary, s.batch, s.precision),
             "bench.yaml")
      .value();
}

Times measured_ops(const Executor& executor, const Program& program) {
  Times times;
  for (int f = 0; f < static_cast<int>(program.functions.size()); ++f) {
    for (const OpTime& op : executor.op_times(f)) times[op.op] += op.time;
  }
  return times;
}

// Returns measured over predicted.
double run(const Shape& shape, const Machine& machine, Times& predicted, Times& measured) {
  const Job job = make_job(workload_of(shape), *machine.device).value();
  const std::unique_ptr<Executor> executor = Executor::create(*job.program, *machine.device).value();
  initialize(*executor, 1).value();
  for (std::size_t v = 0; v < job.program->values.size(); ++v) {
    const ProgramValue& value = job.program->values[v];
    std::vector<std::byte> zeros(static_cast<std::size_t>(value.type.bytes().count()));
    for (int slot = 0; slot < value.slots && value.residence == Residence::input; ++slot)
      executor->write(static_cast<int>(v), slot, zeros).value();
  }
  const auto set = [&](const char* name, float number) {
    executor->write(job.program->value_named(name), 0, std::as_bytes(std::span(&number, 1))).value();
  };
  set("label_count", static_cast<float>(shape.batch * shape.context));
  set("rate", 1e-4F);
  const Schedule& train = job.program->schedule_named("train");
  for (int i = 0; i < 2; ++i) executor->run(train).value();
  const Times before = measured_ops(*executor, *job.program);
  std::vector<double> steps;
  const auto start = std::chrono::steady_clock::now();
  while (steps.size() < 5 || std::chrono::steady_clock::now() - start < std::chrono::milliseconds(1500)) {
    const auto began = std::chrono::steady_clock::now();
    executor->run(train).value();
    steps.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  for (const auto& [op, time] : measured_ops(*executor, *job.program)) {
    const auto was = before.find(op);
    measured[op] +=
        (time - (was == before.end() ? Seconds() : was->second)) * (1.0 / static_cast<double>(steps.size()));
  }
  Seconds whole;
  for (const Action& action : train.actions) {
    const Graph& graph = job.program->functions[static_cast<std::size_t>(action.function)].graph;
    each_kernel(graph, machine.speed, touched_between(*job.program, action.function),
                [&](const GraphNode& node, Seconds time, double runs) {
                  predicted[node.op->name] += time * runs;
                  whole += time * runs;
                });
  }
  std::sort(steps.begin(), steps.end());
  const double lower = steps[steps.size() / 4];  // as in calibration: other load makes a step slow, never fast
  fmt::print("{:>9.1f} ms predicted {:>9.1f} ms measured {:>+6.1f}%   {}\n", 1e3 * whole.count(), 1e3 * lower,
             100 * (whole.count() / lower - 1), to_text(shape));
  return whole.count() / lower;
}

int main_of_bench() {
  const Machine machine = open_machine("cpu", {}, *real_clock()).value();
  const char* seed = std::getenv("SYSTOLE_TEST_SEED");
  const char* shapes = std::getenv("SHAPES");
  const unsigned number = seed != nullptr ? static_cast<unsigned>(std::atoi(seed)) : 1;
  std::mt19937 random(number);
  fmt::print("{}; seed {}\n", machine.speed.source, number);
  Times predicted, measured;
  std::vector<double> errors;
  run({3, 4, 128, 256, 16, 2048, "bf16"}, machine, predicted, measured);  // the quickstart's
  for (int i = 0; i < (shapes != nullptr ? std::atoi(shapes) : 12); ++i)
    errors.push_back(std::abs(run(draw(random), machine, predicted, measured) - 1));
  fmt::print("\n{:<20}{:>14}{:>14}\n", "all of them, by op", "predicted ms", "measured ms");
  for (const auto& [op, time] : measured)
    fmt::print("{:<20}{:>14.2f}{:>14.2f}\n", op, 1e3 * predicted[op].count(), 1e3 * time.count());
  std::sort(errors.begin(), errors.end());
  if (!errors.empty())
    fmt::print("\nmedian error {:.1f}%, largest {:.1f}%\n", 100 * errors[errors.size() / 2], 100 * errors.back());
  return 0;
}

}  // namespace
}  // namespace systole::laws

int main() { return systole::laws::main_of_bench(); }
