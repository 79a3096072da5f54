#include "describe/spec/rules_layout.h"

#include <algorithm>
#include <array>
#include <bit>

#include "ground/base/nearest.h"
#include "ground/mesh/mesh.h"

namespace systole {
namespace {

using Rules = std::vector<BrokenRule>;

constexpr std::array<std::string_view, 6> kMeshAxes{"data", "fsdp", "context", "expert", "model", "pipe"};

void check_exact(const Workload& w, const Mesh& mesh, Rules& broken) {
  const TrainSpec& t = w.train;
  if (!std::has_single_bit(static_cast<std::uint64_t>(t.logical_shards))) {
    broken.push_back({{"train.logical_shards"},
                      ErrorKind::invalid,
                      fmt::format("{} logical shards are not the leaves of a binary tree", t.logical_shards),
                      fmt::format("a power of two: {}", std::bit_ceil(static_cast<std::uint64_t>(t.logical_shards)))});
  }
  if (t.microbatches > t.logical_shards && t.microbatches % t.logical_shards != 0) {
    broken.push_back(
        {{"train.microbatches"},
         ErrorKind::invalid,
         fmt::format("{} microbatches of {} logical shards: a shard has whole ones", t.microbatches, t.logical_shards),
         fmt::format("train.microbatches: {}",
                     std::min(t.microbatches / t.logical_shards * t.logical_shards, most_microbatches(t)))});
  }
  if (size_of(t.precision.reduce) < 4) {
    broken.push_back({{"train.precision.reduce"},
                      ErrorKind::unsupported,
                      fmt::format("train.exact adds up in f32, not in {}", name_of(t.precision.reduce)),
                      "f32"});
  }
  bool other_orders = false;
  for (const char* name : {"model", "expert"}) {
    if (mesh.size_along(name) == 1) continue;
    other_orders = true;
    broken.push_back(
        {{"train.exact", "mesh"},
         ErrorKind::unsupported,
         fmt::format("train.exact on a mesh with an axis '{}': its sums have another order for each size of it", name),
         "train.exact: false, which restores the same bytes and goes on within rounding; or axes data and fsdp alone"});
  }
  if (!other_orders && mesh.num_devices() > t.logical_shards) {
    broken.push_back(
        {{"train.logical_shards", "mesh"},
         ErrorKind::invalid,
         fmt::format("{} devices for {} logical shards: some would own none", mesh.num_devices(), t.logical_shards),
         fmt::format("train.logical_shards: {}, or fewer devices",
                     std::bit_ceil(static_cast<std::uint64_t>(mesh.num_devices())))});
  }
}

// Features that depend on a token's position in its row must know the order in which the context axis stores rows.
void check_context(const Workload& w, const Mesh& mesh, Rules& broken) {
  const std::int64_t parts = mesh.size_along("context");
  if (parts == 1) return;
  const auto not_done = [&](const char* key, const std::string& what, const std::string& hint) {
    broken.push_back(
        {{key, "mesh"},
         ErrorKind::unsupported,
         fmt::format("{} on a mesh with an axis 'context' {} not done yet", what, what.ends_with('s') ? "are" : "is"),
         hint.empty() ? "a mesh without the axis context" : hint + ", or a mesh without the axis context"});
  };
  const DecoderSpec* decoder = w.model.if_is<DecoderSpec>();
  if (decoder == nullptr) return not_done("model.family", "a model of another family than gpt and llama", "");
  if (w.train.exact) not_done("train.exact", "train.exact", "train.exact: false");
  if (decoder->window > 0) not_done("model.window", "a window of attention", "model.window: 0");
  if (decoder->moe.experts > 0) not_done("model.moe.experts", "a mixture of experts", "");
  if (!w.probe.all().empty()) not_done("probe", "looking at values (probe)", "run it without probes");
  const std::int64_t chunks = 2 * parts, sequence_length = decoder->context;
  if (sequence_length == 0 || sequence_length % chunks == 0) return;
  broken.push_back({{"model.context", "mesh"},
                    ErrorKind::invalid,
                    fmt::format("rows of {} tokens are not cut into 2 × {} chunks, two for each device along context",
                                sequence_length, parts),
                    fmt::format("model.context: {}", (sequence_length / chunks + 1) * chunks)});
}

// The expert axis shards experts, the same number on each device.
void check_expert_axis(const Workload& w, const Mesh& mesh, Rules& broken) {
  const std::int64_t size = mesh.size_along("expert"), experts = w.model.experts();
  if (size == 1) return;
  if (experts == 0) {
    broken.push_back({{"mesh"},
                      ErrorKind::invalid,
                      fmt::format("an axis 'expert' of {}, and the model has no experts", size),
                      "axes data or fsdp, which cut the batch too; or model.moe.experts"});
  } else if (experts % size != 0) {
    broken.push_back({{"mesh", "model.moe.experts"},
                      ErrorKind::invalid,
                      fmt::format("{} experts do not divide over an axis 'expert' of {}", experts, size),
                      "expert may be " + divisors_of(experts) + ", and more devices along data or fsdp"});
  }
}

void check_pipeline(const Workload& w, const Mesh& mesh, Rules& broken) {
  const std::int64_t stages = mesh.size_along("pipe"), chunks = stages * w.pipeline.chunks;
  if (!w.pipeline.layers.empty() && static_cast<std::int64_t>(w.pipeline.layers.size()) != chunks) {
    broken.push_back({{"pipeline.layers"},
                      ErrorKind::invalid,
                      fmt::format("{} numbers of layers for {} chunks ({} stages of {})", w.pipeline.layers.size(),
                                  chunks, stages, w.pipeline.chunks),
                      "one number for each chunk, or none at all"});
  }
  if (chunks == 1) return;
  if (stages == 1) {
    broken.push_back({{"pipeline.chunks"},
                      ErrorKind::invalid,
                      fmt::format("{} chunks a stage, and the mesh has no axis 'pipe'", w.pipeline.chunks),
                      "mesh: { pipe: 2 }, or take pipeline.chunks out"});
  }
  if (w.train.exact) {
    broken.push_back({{"train.exact", "mesh"},
                      ErrorKind::unsupported,
                      "train.exact on a mesh with an axis 'pipe' is not done yet",
                      "train.exact: false, which restores the same bytes and goes on within rounding; or axes data and "
                      "fsdp alone"});
  }
  if (!w.probe.all().empty()) {
    broken.push_back({{"probe", "mesh"},
                      ErrorKind::unsupported,
                      "probes on a mesh with an axis 'pipe' are not done yet",
                      "a mesh without the axis pipe"});
  }
  if (w.pipeline.chunks > 1 && w.train.microbatches % stages != 0) {
    broken.push_back(
        {{"pipeline.chunks", "train.microbatches"},
         ErrorKind::invalid,
         fmt::format("an interleaved pipeline of {} stages takes microbatches by the {}; there are {}", stages, stages,
                     w.train.microbatches),
         fmt::format("train.microbatches: {}, or pipeline.chunks: 1", (w.train.microbatches / stages + 1) * stages)});
  }
}

}  // namespace

std::int64_t most_microbatches(const TrainSpec& train) {
  if (!train.exact || train.batch <= train.logical_shards) return train.batch;
  return train.batch / train.logical_shards * train.logical_shards;
}

bool divides(std::int64_t a, std::int64_t b) { return a == 0 || b == 0 || b % a == 0; }

std::vector<std::int64_t> divisors_up_to(std::int64_t most, std::int64_t n) {
  std::vector<std::int64_t> found;
  for (std::int64_t d = 1; d <= std::min(n, most); ++d)
    if (n % d == 0) found.push_back(d);
  return found;
}

std::string divisors_of(std::int64_t n) {
  const std::vector<std::int64_t> found = divisors_up_to(4096, n);
  std::string text;
  for (std::size_t i = 0; i < found.size(); ++i)
    text += (i == 0 ? "" : i + 1 == found.size() ? " or " : ", ") + std::to_string(found[i]);
  return text;
}

std::vector<BrokenRule> broken_layout_rules(const Workload& w) {
  Rules broken;
  const Result<Mesh> mesh = Mesh::of(w.mesh);
  if (!mesh.ok()) {
    broken.push_back({{"mesh"}, ErrorKind::invalid, mesh.error().message, mesh.error().hint});
    return broken;
  }
  for (const auto& [name, size] : w.mesh) {
    if (std::ranges::find(kMeshAxes, name) != kMeshAxes.end()) continue;
    broken.push_back({{"mesh"},
                      ErrorKind::invalid,
                      fmt::format("the mesh has an axis '{}'; axes are {} and {}", name,
                                  fmt::join(kMeshAxes.begin(), kMeshAxes.end() - 1, ", "), kMeshAxes.back()),
                      nearest_hint(name, std::vector<std::string>(kMeshAxes.begin(), kMeshAxes.end()))});
  }
  if (w.train.exact) check_exact(w, *mesh, broken);
  check_context(w, *mesh, broken);
  check_expert_axis(w, *mesh, broken);
  check_pipeline(w, *mesh, broken);
  for (const ParameterSharding& rule : w.sharding) {
    for (const auto& [dim, names] : rule.dims) {
      for (const std::string& name : names) {
        if (name == "context") {
          broken.push_back({{"sharding"},
                            ErrorKind::invalid,
                            fmt::format("sharding cuts '{}' along 'context', along which parameters are whole", dim),
                            "another axis"});
        }
        if (const auto found = mesh->find(name); !found.ok()) {
          broken.push_back({{"sharding"},
                            ErrorKind::invalid,
                            fmt::format("sharding cuts '{}' along '{}', which the mesh does not have", dim, name),
                            w.mesh.empty() ? "take sharding out: there is one device" : found.error().hint});
        }
      }
    }
  }
  return broken;
}

}  // namespace systole
