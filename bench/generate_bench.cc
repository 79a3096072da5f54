// Prefill of 512 tokens, and decoding with a cache: tokens per second of 1 and of 8 sequences, and the share of this
// machine's memory bandwidth that reading the parameters once a step makes of it.
//
//   generate_bench MODEL [stored|int8|int4]    MODEL: a Hugging Face folder or a GGUF file; how its matrices are kept
//   generate_bench MODEL stored|int8|int4 SEQUENCES:PROMPT+ANSWER...
//       so many sequences of prompts and answers of so many tokens; a line of JSON each: tokens a second of the prompts,
//       which are computed one after the other, and of the answers, computed together (bench/serve_compare.py)

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <vector>

#include "execute/serve/engine.h"
#include "ground/tensor/int4.h"
#include "operate/run/served_model.h"

namespace systole {
namespace {

constexpr std::int64_t kPrompt = 512, kCache = 1024;
constexpr int kSteps = 64;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> seconds) {
  std::nth_element(seconds.begin(), seconds.begin() + std::ssize(seconds) / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

void measure(const ServedModel& model, const Machine& machine, DType parameter, std::int64_t slots) {
  EngineOptions options;
  options.slots = slots;
  options.cache = kCache;
  options.parameter = parameter;
  const auto engine = open_engine(model, machine, options).value();
  const std::vector<std::int32_t> prompt(kPrompt, 5);
  std::vector<Engine::Next> next;
  std::vector<double> prefills;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const double began = now();
    engine->prefill(slot, prompt).value();
    prefills.push_back(now() - began);
    next.push_back({slot, 7});
  }
  std::vector<double> steps;
  for (int i = 0; i < kSteps; ++i) {
    const double began = now();
    engine->decode(next).value();
    steps.push_back(now() - began);
  }
  const double step = median(steps), prefill = median(prefills);
  const auto bytes = static_cast<double>(memory_by_owner(engine->program())[Residence::parameter].count());
  const double bandwidth = machine.speed.memory.count();
  fmt::print(
      "{} parameters, {} sequence{}: prefill {:.0f} tokens/s; decode {:.1f} tokens/s, {:.2f} ms a step, {:.1f} GB/s of "
      "parameters, {:.0f}% of this machine's {:.1f}\n",
      is_packed_type(parameter) ? packed_name(parameter) : "stored", slots, slots == 1 ? "" : "s",
      static_cast<double>(kPrompt) / prefill, static_cast<double>(slots) / step, 1e3 * step, bytes / step / 1e9,
      100 * bytes / step / bandwidth, bandwidth / 1e9);
  std::map<std::string, double> ops;
  for (int f = 0; f < static_cast<int>(engine->program().functions.size()); ++f) {
    if (engine->program().functions[static_cast<std::size_t>(f)].name != fmt::format("decode.{}", slots)) continue;
    for (const OpTime& op : engine->executor().op_times(f)) ops[op.op] += op.time.count();
  }
  for (const auto& [op, time] : ops) {
    if (time > 0.02 * step * kSteps) fmt::print("    {:<16}{:8.2f} ms\n", op, 1e3 * time / kSteps);
  }
}

void measure_case(const ServedModel& model, const Machine& machine, DType parameter, const std::string& words) {
  long long slots = 0, prompt = 0, answer = 0;
  if (std::sscanf(words.c_str(), "%lld:%lld+%lld", &slots, &prompt, &answer) != 3) {
    throw std::invalid_argument(words + ": not SEQUENCES:PROMPT+ANSWER");
  }
  EngineOptions options;
  options.slots = slots;
  options.cache = prompt + answer;
  options.parameter = parameter;
  const auto engine = open_engine(model, machine, options).value();
  std::vector<Engine::Next> next;
  double began = now();
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    std::vector<std::int32_t> tokens;  // of each sequence others: no prefix is shared
    for (std::int64_t i = 0; i < prompt; ++i) tokens.push_back(static_cast<std::int32_t>(1000 + slot * 131 + i % 997));
    engine->prefill(slot, tokens).value();
    next.push_back({slot, 7});
  }
  const double prefill = now() - began;
  began = now();
  for (std::int64_t i = 0; i < answer; ++i) engine->decode(next).value();
  const double decode = now() - began;
  fmt::print(R"({{"sequences": {}, "prompt": {}, "answer": {}, "prefill": {:.1f}, "decode": {:.1f}}})"
             "\n",
             slots, prompt, answer, static_cast<double>(slots * prompt) / prefill,
             static_cast<double>(slots * answer) / decode);
}

int generate_bench(const std::vector<std::string>& arguments) {
  const ServedModel model = find_model(arguments.at(0)).value();
  const auto clock = real_clock();
  const Machine machine = machine_for(model, "cpu", *clock).value();
  const std::string kept = arguments.size() > 1 ? arguments[1] : "stored";
  const DType parameter = kept == "int8" ? DType::i8 : kept == "int4" ? kInt4 : DType::f32;
  if (arguments.size() > 2) {
    for (auto words = arguments.begin() + 2; words != arguments.end(); ++words) {
      measure_case(model, machine, parameter, *words);
    }
    return 0;
  }
  for (const std::int64_t slots : {1, 8}) measure(model, machine, parameter, slots);
  return 0;
}

}  // namespace
}  // namespace systole

int main(int count, char** arguments) {
  return systole::generate_bench(std::vector<std::string>(arguments + 1, arguments + count));
}
