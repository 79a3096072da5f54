#include "execute/train/job.h"

#include <algorithm>

#include "ground/base/hash.h"

namespace systole {
namespace {

Status check_dtypes(const PrecisionSpec& precision, const Target& target) {
  // What the Program would not do is refused rather than left out silently.
  for (const auto& [key, dtype] :
       {std::pair("parameter", precision.parameter), std::pair("accumulate", precision.accumulate)}) {
    if (dtype == DType::f32 || dtype == DType::f64) continue;
    return error(ErrorKind::unsupported, "train.precision.{}: {} is not done yet", key, name_of(dtype))
        .hinted(fmt::format("train.precision.{}: f32; train.precision.compute may be bf16", key));
  }
  for (const auto& [key, dtype] :
       {std::pair("parameter", precision.parameter), std::pair("compute", precision.compute),
        std::pair("accumulate", precision.accumulate), std::pair("reduce", precision.reduce)}) {
    if (std::find(target.dtypes.begin(), target.dtypes.end(), dtype) != target.dtypes.end()) continue;
    return error(ErrorKind::unsupported, "train.precision.{}: {} does not compute in {}", key, target.name,
                 name_of(dtype))
        .hinted("bf16 and f32 run here; --backend reference computes in every type, slowly");
  }
  return {};
}

}  // namespace

Result<Job> make_job(const Workload& workload, const Device& device, std::int64_t rank) {
  TRY(check_dtypes(workload.train.precision, device.target()));
  Strategy strategy = strategy_of(workload);
  strategy.snapshot = strategy.snapshot && device.host_sees_memory();  // else: HostState
  return make_job(
      workload, strategy, device.target(),
      [&device](const Graph& g, const GraphNode& n) { return device.workspace(g, n); }, rank);
}

std::string parameters_hash(const Model& model) {
  std::string text;
  for (const Parameter& p : model.parameters())
    text += p.name + " " + to_string(p.type) + (p.trainable ? "\n" : " frozen\n");
  return to_hex(hash128(text));
}

// Where it runs, on what terms, and in which layout computes the same.
Workload numbers_of(const Workload& workload) {
  Workload decides;
  decides.version = workload.version;
  decides.kind = workload.kind;
  decides.command = workload.command;
  decides.model = workload.model;
  decides.data = workload.data;
  decides.train = workload.train;
  decides.train.steps = decides.train.tokens = std::nullopt;  // a run may be made longer
  decides.train.time = std::nullopt;
  decides.train.evaluate = {};
  decides.train.evaluate_batches = 0;
  decides.train.exact = false;  // kept with the numerics of a run that is (numerics.h)
  return decides;
}

std::string numbers_hash(const Workload& workload) { return to_hex(hash128(to_yaml(numbers_of(workload)))); }

}  // namespace systole
