#include "operate/check/lint.h"

#include <fmt/format.h>

#include <algorithm>

#include "describe/spec/mounted.h"
#include "ground/base/bucket_uri.h"
#include "ground/base/counted.h"

namespace systole {
namespace {

using Found = std::vector<Lint>;

// Spot machines are taken back at any time, with half a minute's notice or less.
void one_on_spot(const Workload& w, Found& found) {
  const std::optional<CountRange>& replicas = w.serve.replicas;
  if (w.resources.provisioning != Provisioning::spot || !replicas || replicas->least > 1) return;
  const std::string two = replicas->most > 2 ? fmt::format("2:{}", replicas->most) : "2";
  found.push_back({"one_on_spot", "serve.replicas",
                   "1, on a spot machine: while it is taken back and another starts, nobody is served",
                   fmt::format("serve.replicas: {}, or resources.provisioning: on-demand", two)});
}

void held_out(const Workload& w, Found& found) {
  if (w.data.has_held_out()) return;
  found.push_back({"no_held_out", "data.held_out", "nothing is held out: nobody will know how well it generalises",
                   "data.held_out: { fraction: 5% }, or files of their own"});
}

void best_without_evaluation(const Workload& w, Found& found) {
  if (!w.checkpoint.best || (w.data.has_held_out() && !w.train.evaluate.never())) return;
  found.push_back({"best_without_evaluation", "checkpoint.best",
                   "the best checkpoint is kept, but nothing measures which is best", "train.evaluate: 100 steps"});
}

void checkpoint_never(const Workload& w, Found& found) {
  if (!w.checkpoint.every.never()) return;
  found.push_back({"checkpoint_never", "checkpoint.every", "a kill loses all of the run: it is saved at its end alone",
                   "checkpoint.every: 10min"});
}

void ragged_batch(const Workload& w, Found& found) {
  if (std::optional<Lint> ragged = empty_rows(w)) found.push_back(*std::move(ragged));
}

void high_rate(const Workload& w, Found& found) {
  if (w.train.optimizer.clip > 0 || w.train.optimizer.kind != OptimizerSpec::Kind::adamw ||
      w.train.optimizer.rate < 0.02)
    return;
  found.push_back({"high_rate", "train.optimizer.rate",
                   fmt::format("{:g} is high for adamw, and gradients are not clipped", w.train.optimizer.rate),
                   "train.optimizer: { rate: 3e-4 … 3e-3, clip: 1 }"});
}

// A mounted bucket answers each small read by a request of its own.
void rows_in_a_bucket(const Workload& w, Found& found) {
  if (w.data.kind != DataSpec::Kind::text) return;
  const MountedVolume* volume = volume_of(w.volumes, w.data.folder);
  if (volume == nullptr || volume->second.kind != VolumeSpec::Kind::bucket) return;
  found.push_back(
      {"rows_in_a_bucket", "data.folder",
       fmt::format("in the bucket '{}', uncached: every step reads its rows in pieces of 4 KiB, each of them "
                   "a request",
                   volume->second.of),
       "data.folder on a local SSD: volumes: { /scratch: { local_ssd: true } }"});
}

// Whether this machine mounts it or not: the workload says so. What is sized by the feed is not slower than it.
void rows_on_nfs(const Workload& w, Found& found) {
  if (w.data.kind != DataSpec::Kind::text) return;
  const MountedVolume* volume = volume_of(w.volumes, w.data.folder);
  if (volume == nullptr || volume->second.open()) return;
  if (volume->second.kind != VolumeSpec::Kind::nfs && volume->second.kind != VolumeSpec::Kind::filestore) return;
  found.push_back(
      {"rows_on_nfs", "data.folder",
       fmt::format(
           "on NFS ({}: {}), which its nodes share: each step reads its rows in small pieces, a round trip each "
           "until they are cached",
           name_of(volume->second.kind), volume->second.of),
       "data.folder on a local SSD: volumes: { /scratch: { local_ssd: true } }; systole data probe, on a node, tells "
       "what the mount gives"});
}

// Of all sources of the training rows.
std::vector<std::string> sources_of(const Workload& w) {
  std::vector<std::string> files = w.data.train.files;
  for (const MixtureSpec::Source& source : w.data.mixture.sources)
    files.insert(files.end(), source.text.files.begin(), source.text.files.end());
  return files;
}

// In pods, a folder of no volume, and one of the machine's disks, ends with its pod, and the objects in it do too.
void objects_without_a_cache(const Workload& w, Found& found) {
  const std::vector<std::string> files = sources_of(w);
  if (w.data.kind != DataSpec::Kind::text || (w.volumes.empty() && w.claims.empty())) return;
  if (std::ranges::none_of(files, is_bucket_uri)) return;
  const auto ends = [&](const std::string& folder) {
    const MountedVolume* volume = volume_of(w.volumes, folder);
    const bool claimed = std::ranges::any_of(
        w.claims, [&](const auto& claim) { return folder == claim.first || folder.starts_with(claim.first + "/"); });
    return !claimed && (volume == nullptr || volume->second.kind == VolumeSpec::Kind::local_ssd);
  };
  const std::string& cache = w.data.cache_folder.empty() ? w.data.folder : w.data.cache_folder;
  if (!ends(cache) || !ends(w.data.folder)) return;  // built rows that stay need no objects
  found.push_back({"objects_without_a_cache", w.data.cache_folder.empty() ? "data.folder" : "data.cache.folder",
                   fmt::format("{} ends with its pod, on every node: each start fetches all objects, and builds all "
                               "rows, again",
                               cache),
                   "data.cache.folder in a claim, or data.folder in one: volumes: { /data: { cheapest: true } }"});
}

// A packed file is read from its begin, by one thread and one after another.
void one_packed_object(const Workload& w, Found& found) {
  const std::vector<std::string> files = sources_of(w);
  if (w.data.kind != DataSpec::Kind::text || files.size() != 1 || !is_bucket_uri(files[0])) return;
  const bool packed = std::ranges::any_of(std::initializer_list<const char*>{".gz", ".dz", ".zst", ".zstd", ".tgz"},
                                          [&](const char* end) { return files[0].ends_with(end); });
  if (!packed || files[0].find_first_of("*?[") != std::string::npos) return;
  found.push_back({"one_packed_object", "data.train.files",
                   fmt::format("{} is one packed object: one thread unpacks it, from its begin", files[0]),
                   "several objects, as a pattern: gs://BUCKET/part-*.jsonl.zst"});
}

// Its rename copies, and two writers do not see each other.
void checkpoints_in_a_mounted_bucket(const Workload& w, Found& found) {
  const MountedVolume* volume = volume_of(w.volumes, w.checkpoint.folder);
  if (volume == nullptr || volume->second.kind != VolumeSpec::Kind::bucket) return;
  found.push_back(
      {"checkpoints_in_a_mounted_bucket", "checkpoint.folder",
       "in a mounted bucket, whose rename and fsync are not those of a disk",
       fmt::format("checkpoint.folder: gs://{}/checkpoints, which is written without the mount", volume->second.of)});
}

constexpr void (*kRules[])(const Workload&, Found&) = {held_out,
                                                       best_without_evaluation,
                                                       checkpoint_never,
                                                       ragged_batch,
                                                       high_rate,
                                                       rows_in_a_bucket,
                                                       rows_on_nfs,
                                                       checkpoints_in_a_mounted_bucket,
                                                       objects_without_a_cache,
                                                       one_packed_object};

}  // namespace

namespace {

// The largest number of logical shards without padded rows.
std::string fewer_shards(const TrainSpec& train) {
  for (std::int64_t shards = train.logical_shards; shards > 0; shards /= 2) {
    const std::int64_t of_shard = std::max<std::int64_t>(1, train.microbatches / shards);
    const bool whole = train.microbatches <= shards || train.microbatches % shards == 0;
    if (whole && train.batch % (shards * of_shard) == 0)
      return fmt::format(", or train.logical_shards: {}, for at most as many workers", shards);
  }
  return fmt::format(", or train.microbatches: 1 and train.logical_shards: {}, for at most as many workers",
                     std::min(train.logical_shards, train.batch & -train.batch));
}

}  // namespace

std::optional<Lint> empty_rows(const Workload& w) {
  const TrainSpec& train = w.train;
  const std::int64_t of_shard = std::max<std::int64_t>(1, train.microbatches / train.logical_shards);
  std::int64_t devices = 1;  // devices that shard a microbatch's rows
  for (const auto& [axis, size] : w.mesh)
    devices *= !train.exact && (axis == "data" || axis == "fsdp" || axis == "expert") ? size : 1;
  const std::int64_t parts = (train.exact ? train.logical_shards * of_shard : train.microbatches) * devices;
  const std::int64_t rows = (train.batch + parts - 1) / parts, empty = rows * parts - train.batch;
  if (empty == 0) return std::nullopt;
  std::vector<std::string> in;
  if (train.exact) in.push_back(fmt::format("{} logical shards", train.logical_shards));
  if (train.exact ? of_shard > 1 : train.microbatches > 1)
    in.push_back(fmt::format("{} microbatches", train.exact ? of_shard : train.microbatches));
  if (devices > 1) in.push_back(fmt::format("{} devices", devices));
  const auto number = [](std::int64_t n) { return counted(n, "row"); };
  Lint found;
  found.rule = train.exact ? "ragged_shards" : "ragged_microbatches";
  found.key = train.exact ? "train.logical_shards" : train.microbatches > 1 ? "train.microbatches" : "train.batch";
  found.text = fmt::format("{} in {} of {}: {} of {} computed {} empty, {:.0f}% of a step", number(train.batch),
                           fmt::join(in, " of "), rows, empty, number(rows * parts), empty == 1 ? "is" : "are",
                           100 * static_cast<double>(empty) / static_cast<double>(rows * parts));
  found.hint = fmt::format("train.batch: {}", rows * parts);
  if (train.exact) found.hint += fewer_shards(train);
  if (!train.exact && devices == 1) found.hint += ", or let train.microbatches divide train.batch";
  return found;
}

bool pads_rows(const Workload& w, bool static_shapes) {
  const bool accelerator =
      static_shapes || !w.resources.accelerators.empty() || w.resources.gpus_per_node.value_or(0) > 0;
  return w.data.kind == DataSpec::Kind::text && accelerator && (!w.data.packing || w.model.task() == Task::pairs);
}

std::optional<Lint> padded_rows(const Workload& w, bool static_shapes, const std::optional<MeasuredRows>& measured) {
  constexpr double kLittle = 0.1;
  const bool pairs = w.model.task() == Task::pairs;
  if (!pads_rows(w, static_shapes)) return std::nullopt;
  if (measured && measured->padding < kLittle) return std::nullopt;
  if (w.data.buckets && !measured) return std::nullopt;
  Lint found{"padded_rows", pairs ? "model.context" : w.data.buckets ? "data.buckets" : "data.packing", "", ""};
  found.text = pairs            ? fmt::format("a pair in each row of {} + {}", w.model.context(),
                                              counted(w.model.target_context(), "token"))
               : w.data.buckets ? std::string("one text in each row, of these lengths")
                                : fmt::format("one text in each row of {}", counted(w.model.context(), "token"));
  found.text += measured ? fmt::format(": {:.0f}% of what an accelerator computes is padding", 100 * measured->padding)
                         : ": an accelerator computes their padding too; how much it is, is known once the data are "
                           "built (systole data build)";
  const auto rounded = [](std::int64_t length) { return (length + 7) / 8 * 8; };
  if (!pairs) {
    found.hint = w.data.buckets && w.data.buckets->automatic ? "more data.shapes, or data.packing: true without buckets"
                 : w.data.buckets ? "data.buckets: auto, or data.packing: true without buckets"
                                  : "data.packing: true, or data.buckets: auto";
  } else if (measured) {
    found.hint = fmt::format("model.context: {} and model.target_context: {} hold 99% of the inputs and targets",
                             std::min(rounded(measured->most), w.model.context()),
                             std::min(rounded(measured->most_of_targets), w.model.target_context()));
  } else {
    found.hint = "systole data lengths shows which model.context and model.target_context hold most of them";
  }
  return found;
}

std::vector<Lint> lint(const Workload& workload) {
  Found found;
  if (workload.kind == Workload::Kind::serve) {
    one_on_spot(workload, found);
    return found;
  }
  for (const auto& rule : kRules) rule(workload, found);
  return found;
}

}  // namespace systole
