#include "operate/cli/batch_price.h"

#include "ground/base/counted.h"
#include "predict/perf/estimate.h"

namespace systole::cli {
namespace {

std::string tokens_text(const BatchPrice& price) {
  std::string text = counted(price.prompt_tokens, "prompt token");
  if (price.new_tokens > 0) text += fmt::format(" and at most {}", counted(price.new_tokens, "new token"));
  return text;
}

std::string time_text(const PricedBatch& batch) {
  if (!batch.time) return "unknown: " + batch.unknown;
  return (batch.price.new_tokens > 0 ? "at most " : "about ") + to_string(*batch.time);
}

}  // namespace

PricedBatch priced(const BatchPrice& price, const Engine& engine, const Machine& machine) {
  PricedBatch batch{.price = price};
  const Target& target = machine.device->target();
  const Estimate estimated = estimate(engine.program(), machine.speed);
  if (target.kind == "reference") {
    batch.unknown = "the reference backend has no measured rates";  // the machine's rates are those of its kernels
  } else if (estimated.unknown) {
    batch.unknown = *estimated.unknown;
  } else {
    batch.time = Seconds();
    for (const auto& [name, count] : price.calls)
      *batch.time += estimated.schedule_named(name).time * static_cast<double>(count);
  }
  batch.device = target.name;
  if (batch.time) batch.rates = machine.speed.source;
  batch.memory = serving_memory(engine.program(), Bytes(), Bytes());
  return batch;
}

std::string line_of(const PricedBatch& batch) {
  std::string text = fmt::format("{} to compute, with {}", counted(batch.price.rows, "row"), tokens_text(batch.price));
  if (batch.time) text += fmt::format("; predicted: {}", time_text(batch));
  return text;
}

std::string lines_of(const PricedBatch& batch) {
  const ServingMemory& memory = batch.memory;
  std::string text = fmt::format("rows    {} of {} to compute", batch.price.rows, batch.rows);
  if (batch.failed > 0) text += fmt::format("; {} with an error", counted(batch.failed, "row"));
  text += fmt::format("\ntokens  {}\n", tokens_text(batch.price));
  text += fmt::format("time    {}\n", time_text(batch));
  text += fmt::format("device  {}{}\n", batch.device, batch.rates.empty() ? "" : "; its rates: " + batch.rates);
  text +=
      fmt::format("memory  {}: {} of parameters, {} of keys and values, {} of activations\n", to_string(memory.total()),
                  to_string(memory.parameters), to_string(memory.cache), to_string(memory.rest));
  text += fmt::format("input   {}\n", to_string(batch.input));
  return text;
}

Node node_of(const PricedBatch& batch) {
  Node calls = Node::map();
  for (const auto& [name, count] : batch.price.calls) calls.set(name, count);
  const ServingMemory& memory = batch.memory;
  return Node::map({{"rows", batch.rows},
                    {"rows_to_compute", batch.price.rows},
                    {"failed", batch.failed},
                    {"prompt_tokens", batch.price.prompt_tokens},
                    {"new_tokens_at_most", batch.price.new_tokens},
                    {"predicted_s", batch.time ? Node(batch.time->count()) : Node()},
                    {"unknown", batch.time ? Node() : Node(batch.unknown)},
                    {"device", batch.device},
                    {"rates", batch.time ? Node(batch.rates) : Node()},
                    {"calls", std::move(calls)},
                    {"memory_bytes", Node::map({{"total", memory.total().count()},
                                                {"parameters", memory.parameters.count()},
                                                {"cache", memory.cache.count()},
                                                {"activations", memory.rest.count()}})},
                    {"input_bytes", batch.input.count()}});
}

}  // namespace systole::cli
