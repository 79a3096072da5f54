// Training steps of one workload, run by the trainer as `systole run` runs them, for a peer to be timed against. It
// answers on standard output to lines on standard input, so that two sides can take turns (bench/compare.py):
//
//   steps N    runs N steps, answers {"seconds": [..N..], "losses": [..N..]}
//   memory     answers {"peak_bytes": high-water mark of resident memory}
//   ops        answers the milliseconds in each op since the last time, a step
//   matmul     answers {"f32": FLOP/s, "bf16": FLOP/s} of a product of two 2048 x 2048 matrices, here and now
//   quit       or the end of the input
//
// Batches come from a file of little-endian i32 token ids: `batch` rows of `sequence_length + 1` tokens a step, from
// its beginning again at its end: the same rows as the other side reads.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "describe/ops/ops.h"
#include "execute/calibrate/micro_run.h"
#include "execute/runtime/initialize.h"
#include "execute/train/trainer.h"
#include "execute/weights/hf_folder.h"
#include "ground/process/machine.h"
#include "operate/run/plan_run.h"

namespace systole {
namespace {

std::vector<std::int32_t> read_ids(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good(), "no tokens in {}", path);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::int32_t> ids(bytes.size() / 4);
  std::memcpy(ids.data(), bytes.data(), ids.size() * 4);
  return ids;
}

void answer(const std::string& line) { std::cout << line << std::endl; }

// The other side's questions, asked when the trainer wants its next batch: what it answers then is all done.
class Questions : public EventSink {
 public:
  Questions(Device& device, const Executor& executor, const Job& job, Clock& clock)
      : device_(device), executor_(executor), job_(job), clock_(clock) {}

  void add(const Event& event) override {
    const auto* step = std::get_if<StepEnded>(&event.body);
    if (step == nullptr) return;
    losses_.push_back(step->loss);
    const auto now = std::chrono::steady_clock::now();
    seconds_.push_back(std::chrono::duration<double>(now - began_).count());
    began_ = now;
  }
  Status flush() override { return {}; }

  // Whether another step is to be run.
  bool another() {
    if (left_ == 0 && !ask()) return false;
    --left_;
    return true;
  }

 private:
  bool ask() {
    if (!seconds_.empty())
      answer(fmt::format("{{\"seconds\": [{:.6f}], \"losses\": [{:.7f}]}}", fmt::join(seconds_, ", "),
                         fmt::join(losses_, ", ")));
    seconds_.clear();
    losses_.clear();
    std::string line;
    while (std::getline(std::cin, line)) {
      std::istringstream words(line);
      std::string word;
      words >> word;
      if (word == "steps" && words >> left_ && left_ > 0) {
        steps_ += left_;
        began_ = std::chrono::steady_clock::now();
        return true;
      }
      if (word == "memory") {
        answer(fmt::format("{{\"peak_bytes\": {}}}", peak_resident_memory().count()));
      } else if (word == "ops") {
        tell_ops();
      } else if (word == "matmul") {
        answer(fmt::format("{{\"f32\": {:.4g}, \"bf16\": {:.4g}}}", matmul(DType::f32), matmul(DType::bf16)));
      } else {
        return false;
      }
    }
    return false;
  }

  void tell_ops() {
    std::map<std::string, double> now;
    for (int f = 0; f < static_cast<int>(job_.program->functions.size()); ++f) {
      for (const OpTime& op : executor_.op_times(f)) now[op.op] += op.time.count();
    }
    std::string text;
    for (const auto& [op, seconds] : now)
      text += fmt::format("{}\"{}\": {:.2f}", text.empty() ? "" : ", ", op,
                          1e3 * (seconds - before_[op]) / static_cast<double>(std::max(steps_, 1)));
    before_ = now;
    steps_ = 0;
    answer("{" + text + "}");
  }

  double matmul(DType dtype) {
    const Type type(dtype, {2048, 2048});
    Graph graph("matmul");
    const Value a = graph.input("a", type), b = graph.input("b", type);
    graph.output("y", contract(a, b, "ij,kj->ik"));
    const auto run = MicroRun::make(device_, std::move(graph)).value();
    const Sample sample = run->measure(clock_, Seconds(0.5)).value();
    return static_cast<double>(run->work().flops) / sample.time.count();
  }

  Device& device_;
  const Executor& executor_;
  const Job& job_;
  Clock& clock_;
  int left_ = 0, steps_ = 0;
  std::vector<double> seconds_, losses_;
  std::chrono::steady_clock::time_point began_;
  std::map<std::string, double> before_;
};

class TokenRows : public BatchSource {
 public:
  TokenRows(std::vector<std::int32_t> ids, std::int64_t rows, std::int64_t sequence_length, Questions& questions)
      : ids_(std::move(ids)), rows_(rows), sequence_length_(sequence_length), questions_(questions) {
    const auto size = static_cast<std::size_t>(rows * sequence_length);
    for (auto* column : {&tokens_, &labels_, &positions_}) column->resize(size);
    segments_.assign(size, 1);
    CHECK(ids_.size() >= static_cast<std::size_t>(rows * (sequence_length + 1)), "too few tokens for a batch");
  }

  Result<const StepBatch*> next() override {
    if (!questions_.another()) std::exit(0);
    if (at_ + rows_ * (sequence_length_ + 1) > static_cast<std::int64_t>(ids_.size())) at_ = 0;
    for (std::int64_t r = 0; r < rows_; ++r) {
      for (std::int64_t i = 0; i < sequence_length_; ++i) {
        const auto from = static_cast<std::size_t>(at_ + r * (sequence_length_ + 1) + i),
                   to = static_cast<std::size_t>(r * sequence_length_ + i);
        tokens_[to] = ids_[from];
        labels_[to] = ids_[from + 1];
        positions_[to] = static_cast<std::int32_t>(i);
      }
    }
    at_ += rows_ * (sequence_length_ + 1);
    const auto input = [&](const char* name, const std::vector<std::int32_t>& values) {
      return InputRows{name, std::as_bytes(std::span(values)), sequence_length_ * 4};
    };
    batch_.inputs = {input("tokens", tokens_), input("labels", labels_), input("segments", segments_),
                     input("positions", positions_)};
    batch_.rows = rows_;
    batch_.label_count = rows_ * sequence_length_;
    return &batch_;
  }
  Node cursor() const override { return Node::map({{"at", at_}}); }

 private:
  const std::vector<std::int32_t> ids_;
  const std::int64_t rows_, sequence_length_;
  Questions& questions_;
  std::int64_t at_ = 0;
  std::vector<std::int32_t> tokens_, labels_, segments_, positions_;
  StepBatch batch_;
};

// arguments: workload, tokens, then changes to the workload: key=value.
int train_bench(const std::vector<std::string>& arguments) {
  WorkloadOptions options;
  options.weights = values_of_weights;
  for (std::size_t i = 2; i < arguments.size(); ++i) options.sets.push_back(arguments[i]);
  const Workload workload = load_workload(arguments[0], options).value();
  const std::unique_ptr<Clock> clock = real_clock();
  const Machine machine = open_machine("cpu", workload.resources, *clock).value();
  const Job job = make_job(workload, *machine.device).value();
  const std::unique_ptr<Executor> executor = Executor::create(*job.program, *machine.device).value();
  if (workload.model.weights.empty()) {
    initialize(*executor, 1).value();
  } else {
    load_weights(*executor, open_hf_folder(workload.model.weights, workload.model).value()).value();
  }
  answer(fmt::format("{{\"peer\": \"systole on {}\"}}", machine.device->target().name));
  Questions questions(*machine.device, *executor, job, *clock);
  TimeLedger ledger(*clock, Category::startup);
  const std::unique_ptr<Store> store = make_memory_store();
  TrainerParts parts;
  parts.clock = clock.get();
  parts.events = &questions;
  parts.checkpoints = {objects_in(*store), "checkpoints"};
  parts.source =
      std::make_unique<TokenRows>(read_ids(arguments[1]), workload.train.batch, workload.model.context(), questions);
  parts.vocabulary = job.model->vocabulary();
  Trainer(job, *executor, std::move(parts), ledger, {}).run().value();  // to the end of the questions
  return 0;
}

}  // namespace
}  // namespace systole

int main(int count, char** arguments) {
  return systole::train_bench(std::vector<std::string>(arguments + 1, arguments + count));
}
