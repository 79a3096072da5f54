#include "execute/train/training_job.h"

#include "ground/base/hash.h"

namespace systole {
Result<Job> make_job(const Workload& workload, const Device& device, std::int64_t rank,
                     std::span<const std::int64_t> lengths) {
  TRY(check_precision(workload.train.precision, device.target()));
  Strategy strategy = strategy_of(workload);
  strategy.snapshot = strategy.snapshot && device.host_sees_memory();  // else: HostState
  return make_job(
      workload, strategy, device.target(),
      [&device](const Graph& g, const GraphNode& n) { return device.workspace(g, n); }, rank, lengths);
}

std::string parameters_hash(const Model& model) {
  std::string text;
  for (const Parameter& p : model.parameters())
    text += p.name + " " + to_string(p.type) + (p.trainable ? "\n" : " frozen\n");
  return to_hex(hash128(text));
}

// Excludes where it runs, on what terms, and in which layout: these compute the same.
Workload numbers_of(const Workload& workload) {
  Workload decides;
  decides.version = workload.version;
  decides.kind = workload.kind;
  decides.command = workload.command;
  decides.model = workload.model;
  decides.data = workload.data;
  decides.data.cache_folder.clear();
  decides.data.cache_limit.reset();
  decides.data.cache_memory.reset();
  decides.data.readers = decides.data.queue = std::nullopt;
  decides.train = workload.train;
  decides.train.steps = decides.train.tokens = std::nullopt;  // a run may be extended
  decides.train.time = std::nullopt;
  decides.train.evaluate = {};
  decides.train.evaluate_batches = 0;
  decides.train.exact = false;  // kept with the numerics of an exact run (numerics.h)
  return decides;
}

std::string numbers_hash(const Workload& workload) { return to_hex(hash128(to_yaml(numbers_of(workload)))); }

}  // namespace systole
