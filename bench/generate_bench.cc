// Decoding with a cache: tokens per second of 1 and of 8 sequences, and the share of this machine's memory bandwidth
// that reading the parameters once a step makes of it.
//
//   generate_bench FOLDER [f32|bf16]     FOLDER: a Hugging Face model; parameters are kept in that type

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include "describe/models/list.h"
#include "execute/serve/engine.h"
#include "operate/cli/hf_folder.h"
#include "operate/cli/session.h"

namespace systole {
namespace {

constexpr std::int64_t kPrompt = 64, kCache = 256;
constexpr int kSteps = 64;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void measure(const Model& model, const cli::HfFolder& folder, const cli::Machine& machine, DType parameter,
             std::int64_t slots) {
  EngineOptions options;
  options.slots = slots;
  options.cache = kCache;
  options.parameter = parameter;
  const auto engine = Engine::create(model, *machine.device, options).value();
  cli::load_weights(engine->executor(), folder).value();
  const std::vector<std::int32_t> prompt(kPrompt, 5);
  std::vector<Engine::Next> next;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    engine->prefill(slot, prompt).value();
    next.push_back({slot, 7});
  }
  std::vector<double> steps;
  for (int i = 0; i < kSteps; ++i) {
    const double began = now();
    engine->decode(next).value();
    steps.push_back(now() - began);
  }
  std::nth_element(steps.begin(), steps.begin() + kSteps / 2, steps.end());
  const double step = steps[kSteps / 2];
  double bytes = 0;
  for (const Parameter& p : model.parameters())
    bytes += static_cast<double>(p.type.num_elements() * size_of(parameter)) * (p.name == "embed.positions" ? 0 : 1);
  const double bandwidth = machine.speed.memory.count();
  fmt::print(
      "{} parameters, {} sequence{}: {:.1f} tokens/s, {:.2f} ms a step, {:.1f} GB/s of parameters, {:.0f}% of "
      "this machine's {:.1f}\n",
      name_of(parameter), slots, slots == 1 ? "" : "s", static_cast<double>(slots) / step, 1e3 * step,
      bytes / step / 1e9, 100 * bytes / step / bandwidth, bandwidth / 1e9);
  std::map<std::string, double> ops;
  for (int f = 0; f < static_cast<int>(engine->program().functions.size()); ++f) {
    if (engine->program().functions[static_cast<std::size_t>(f)].name != "decode") continue;
    for (const OpTime& op : engine->executor().op_times(f)) ops[op.op] += op.time.count();
  }
  for (const auto& [op, time] : ops) {
    if (time > 0.02 * step * kSteps) fmt::print("    {:<16}{:8.2f} ms\n", op, 1e3 * time / kSteps);
  }
}

int generate_bench(const std::vector<std::string>& arguments) {
  const Workload workload = cli::workload_around(arguments.at(0)).value();
  const cli::HfFolder folder = cli::open_hf_folder(arguments[0], workload.model).value();
  const auto clock = real_clock();
  const cli::Machine machine = cli::open_machine("cpu", workload.resources, *clock).value();
  const std::unique_ptr<const Model> model = make_model(workload.model);
  const DType parameter = arguments.size() > 1 && arguments[1] == "bf16" ? DType::bf16 : DType::f32;
  for (const std::int64_t slots : {1, 8}) measure(*model, folder, machine, parameter, slots);
  return 0;
}

}  // namespace
}  // namespace systole

int main(int count, char** arguments) {
  return systole::generate_bench(std::vector<std::string>(arguments + 1, arguments + count));
}
