// Layouts of one workload, each estimated in full: its time, and the memory that it needs at least. A peer's search is
// timed against it over the same layouts (bench/calculon.py).
//
//   layouts_bench JOB.yaml CHIP STACK < layouts
//
// A layout is a line of whole numbers and words:
//
//   pipe data model in_parts chunks microbatches batch recompute hides
//
// in_parts 1: the optimizer's state lies in parts along the ranks of data; recompute: none, attention or block; hides:
// of tensor and data messages those that run beside work, both, tensor, data or none. The answer, on standard output,
// is JSON: "seconds" and "gib" of each (null: it cannot be composed), "usable_gib" of the chip, "programs" made for
// them, "cold" and "warm" the seconds that all of them take with and without those Programs, on "threads".

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

#include "ground/base/parallel.h"
#include "predict/perf/device_memory.h"
#include "predict/perf/step_time.h"
#include "predict/plan/composed_cost.h"
#include "predict/plan/testing/tiny_workload.h"

namespace systole {
namespace {

constexpr int kThreads = 2;
constexpr double kGiB = 1 << 30;
constexpr double kLongEnough = 1;  // seconds: what is warm is repeated until then

struct Line {
  Candidate candidate;
  std::int64_t batch = 0;
  bool hides_tensor = true, hides_data = true;
};

std::vector<Line> read_lines(std::istream& in) {
  std::vector<Line> lines;
  for (std::string text; std::getline(in, text);) {
    std::istringstream words(text);
    Line line;
    Candidate& c = line.candidate;
    std::int64_t data = 1, in_parts = 0;
    std::string recompute, hides;
    words >> c.pipe >> data >> c.model >> in_parts >> c.chunks >> c.microbatches >> line.batch >> recompute >> hides;
    if (!words) fail(error(ErrorKind::invalid, "'{}' is no layout", text));
    (in_parts == 1 ? c.fsdp : c.data) = data;
    c.stored = ZeroStage::state;
    if (recompute == "attention") c.recompute = RecomputeSpec::Kind::attention;
    if (recompute == "block") c.recompute = RecomputeSpec::Kind::block;
    line.hides_tensor = hides == "both" || hides == "tensor";
    line.hides_data = hides == "both" || hides == "data";
    lines.push_back(line);
  }
  return lines;
}

struct Answer {
  double seconds = 0, gib = 0;
};

class Bench {
 public:
  Bench(const std::string& job, const std::string& chip, const std::string& stack)
      : chip_(*catalog().find(chip).value()),
        stack_(stack_of(builtin_stacks(), stack)),
        composer_(read_workload(text_of(job), job).value(), target_of_accelerators(), kThreads) {}

  std::vector<std::optional<Answer>> all(const std::vector<Line>& lines) const {
    std::vector<std::optional<Answer>> answers(lines.size());
    for_each_in_parallel(lines.size(), kThreads, [&](std::size_t i) -> Status {
      // A line often differs from the one before in what is hidden alone; it is estimated in full all the same.
      answers[i] = one(lines[i]);
      return {};
    }).value();
    return answers;
  }
  std::int64_t programs() const { return composer_.programs(); }
  double usable_gib() const {
    return static_cast<double>(cluster_of(chip_, {}).value().chip.capacity.count()) * kUsableMemory / kGiB;
  }

 private:
  static std::string text_of(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::optional<Answer> one(const Line& line) const {
    const Result<ComposedCost> composed = composer_.compose(line.candidate, line.batch);
    if (!composed.ok()) return std::nullopt;
    ClusterOptions options;
    options.devices = line.candidate.devices();
    const Cluster cluster = cluster_of(chip_, options).value();
    StackProfile stack = stack_;
    if (!line.hides_tensor) stack.tensor_hidden = 0;
    if (!line.hides_data) stack.data_hidden = 0;
    const StepParts parts = step_parts(composed->step, cluster, {});
    const Bytes memory = composed->memory_at_least({}, stack);
    return Answer{step_time(parts, stack).seconds, static_cast<double>(memory.count()) / kGiB};
  }

  const CatalogEntry& chip_;
  const StackProfile stack_;
  const Composer composer_;
};

int bench(const std::string& job, const std::string& chip, const std::string& stack) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  const std::vector<Line> lines = read_lines(std::cin);
  const Clock::time_point cold_begin = Clock::now();
  const Bench bench(job, chip, stack);
  const std::vector<std::optional<Answer>> answers = bench.all(lines);
  const double cold = since(cold_begin);
  int rounds = 0;
  const Clock::time_point warm_begin = Clock::now();
  do {
    bench.all(lines);
    ++rounds;
  } while (since(warm_begin) < kLongEnough);
  const double warm = since(warm_begin) / rounds;

  std::string seconds, gib;
  for (const std::optional<Answer>& answer : answers) {
    const char* comma = seconds.empty() ? "" : ", ";
    seconds += comma + (answer ? fmt::format("{}", answer->seconds) : "null");
    gib += comma + (answer ? fmt::format("{}", answer->gib) : "null");
  }
  fmt::print(
      "{{\"seconds\": [{}], \"gib\": [{}], \"usable_gib\": {}, \"programs\": {}, \"cold\": {}, \"warm\": {}, "
      "\"threads\": {}}}\n",
      seconds, gib, bench.usable_gib(), bench.programs(), cold, warm, kThreads);
  return 0;
}

}  // namespace
}  // namespace systole

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "layouts_bench JOB.yaml CHIP STACK < layouts\n");
    return 2;
  }
  try {
    return systole::bench(argv[1], argv[2], argv[3]);
  } catch (const std::exception& e) {
    fmt::print(stderr, "layouts_bench: {}\n", e.what());
    return 1;
  }
}
