// Keys for clusters: number of nodes, time limit, image and folder. Keys of single targets are in targets/.
#include <algorithm>

#include "describe/spec/schema.h"
#include "describe/spec/secret.h"
#include "describe/spec/word_codecs.h"

namespace systole {
namespace {

// The provisioning terms that a job can ask for.
Codec terms_codec() {
  static constexpr Provisioning kTerms[] = {Provisioning::on_demand, Provisioning::spot, Provisioning::flex_start,
                                            Provisioning::reservation};
  Codec codec = named_codec(
      {"on-demand", "spot", "flex-start", "reserved"},
      [](Workload& w, std::size_t i) { w.resources.provisioning = kTerms[i]; },
      [](Workload& w) {
        const auto found = std::ranges::find(kTerms, w.resources.provisioning.value_or(kTerms[0]));
        return static_cast<std::size_t>(found - std::begin(kTerms));
      });
  codec.write = [write = codec.write](Workload& w) { return w.resources.provisioning ? write(w) : Node(); };
  return codec;
}

std::string wrong_variable(const std::string& name) {
  if (!is_variable_name(name)) return "is no name of a variable";
  return is_variable_of_agent(name) ? "is set by the agent, for each rank" : "";
}

std::string wrong_path(const std::string& path) {
  if (!path.starts_with('/') || path == "/" || path.find(':') != path.npos) return "is no path of a container";
  return "";
}

void add_hardware_keys(std::vector<Key>& keys) {
  keys.push_back({.path = "resources.accelerators",
                  .codec = text_codec(AT(resources.accelerators)),
                  .doc = "Accelerators of the catalog that it runs on: h100:16, a3-highgpu-8g:2, v5e:4x4, v5p-128.",
                  .more = "In the words of `systole plan --on`; nodes and what each has follow from it, and the kind "
                          "of node that is asked for. Without it, what the plan was made for.",
                  .optional = true});
  keys.push_back({.path = "resources.slices",
                  .codec = optional_count_codec(AT(resources.slices), 1, 10'000),
                  .doc = "TPU slices that work together over the data-centre network. Without it, 1.",
                  .optional = true,
                  .when = {"resources.accelerators", {}}});
  keys.push_back({.path = "resources.provisioning",
                  .codec = terms_codec(),
                  .doc = "On which terms its machines are had. Without it, on demand.",
                  .optional = true});
  keys.push_back({.path = "resources.reservation",
                  .codec = word_codec(AT(resources.reservation), "-./_", "name of a reservation"),
                  .doc = "The reservation that its machines are taken from.",
                  .optional = true,
                  .when = {"resources.provisioning", {"reserved"}}});
}

}  // namespace

void add_cluster_keys(Schema& schema) {
  auto& keys = schema.keys;
  keys.push_back({.path = "resources.nodes",
                  .codec = optional_range_codec(AT(resources.nodes), 1, 100'000),
                  .doc = "Machines of a cluster; 2:8 where some may leave or join while it runs. Without it, 1.",
                  .optional = true});
  keys.push_back({.path = "resources.ranks_per_node",
                  .codec = optional_count_codec(AT(resources.ranks_per_node), 1, 1024),
                  .doc = "Ranks of each node. Without it one a GPU, else one.",
                  .optional = true});
  keys.push_back({.path = "resources.gpus_per_node",
                  .codec = optional_count_codec(AT(resources.gpus_per_node), 1, 1024),
                  .doc = "GPUs of each node of a cluster. Without it, none.",
                  .optional = true});
  schema.sections.push_back(
      {"resources.loader", "How a program of your own loads its samples: what /dev/shm of a pod has to hold.", {}, {}});
  keys.push_back({.path = "resources.loader.workers",
                  .codec = optional_count_codec(AT(resources.loader.workers), 1, 4096),
                  .doc = "Of a program of your own: processes of each rank that load samples, PyTorch's num_workers.",
                  .more =
                      "With batch_size and sample they size /dev/shm of a pod: each has prefetch batches ready there, "
                      "and one more is in use.",
                  .optional = true,
                  .when = {"command", {}}});
  keys.push_back({.path = "resources.loader.batch_size",
                  .codec = optional_count_codec(AT(resources.loader.batch), 1, 1'000'000'000),
                  .doc = "Samples of a batch, of each rank.",
                  .optional = true,
                  .when = {"resources.loader.workers", {}}});
  keys.push_back({.path = "resources.loader.sample",
                  .codec = optional_bytes_codec(AT(resources.loader.sample), Bytes(1)),
                  .doc = "Bytes of a sample as workers hand it on, decoded: 588KiB for 3 x 224 x 224 of f32.",
                  .optional = true,
                  .when = {"resources.loader.workers", {}}});
  keys.push_back({.path = "resources.loader.prefetch",
                  .codec = count_codec(AT(resources.loader.prefetch), 1, 1'000),
                  .doc = "Batches that each of them has ready, PyTorch's prefetch_factor.",
                  .default_yaml = "2",
                  .when = {"resources.loader.workers", {}}});
  keys.push_back({.path = "resources.longest",
                  .codec = optional_seconds_codec(AT(resources.longest)),
                  .doc = "How long a cluster lets it run at once; then it saves, ends, and is begun again.",
                  .optional = true});
  add_hardware_keys(keys);
  keys.push_back({.path = "ranks.retries",
                  .codec = optional_count_codec(AT(ranks.retries), 0, 1000),
                  .doc = "How often its cluster begins it again after a preemption or a loss. Without it, 10.",
                  .optional = true});
  keys.push_back({.path = "image",
                  .codec = text_codec(AT(image)),
                  .doc = "Container image, NAME@sha256:DIGEST or NAME:TAG, that has systole and what it needs.",
                  .more = "A digest is one image for ever; what a tag names changes, and ':latest' is refused.",
                  .optional = true});
  keys.push_back(
      {.path = "env",
       .codec = without_secret_variables(named_texts_codec(AT(env), wrong_variable, "another name, or take it out")),
       .doc = "Environment of every rank, beside what it inherits.",
       .more = "Passwords, keys and tokens are refused here: they stand in secrets, by reference.",
       .optional = true});
  keys.push_back({.path = "claims",
                  .codec = named_texts_codec(AT(claims), wrong_path, "/data: NAME mounts the claim NAME there"),
                  .doc = "Persistent volume claims by the path where each is mounted: { /data: corpus }.",
                  .optional = true});
  add_volume_keys(schema);
  add_secrets_key(schema);
  keys.push_back({.path = "folder",
                  .codec = text_codec(AT(folder)),
                  .doc = "Where a cluster's runs lie, in a file system that all its nodes see. Without it, runs.",
                  .optional = true});
  add_slurm_keys(schema);
  add_kubernetes_keys(schema);
  add_ssh_keys(schema);
}

}  // namespace systole
