#pragma once
// The schema: every key of the Workload document, once, in printing order.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/broken_rule.h"
#include "describe/spec/codec.h"

namespace systole {

// A key applies only while `key` has one of `values`, or any value if `values` is empty. No `key`: always.
struct Condition {
  std::string key;
  std::vector<std::string> values;
};

struct Key {
  std::string path;  // "train.optimizer.rate"
  Codec codec;
  std::string doc;        // one line
  std::string more = {};  // further explanation for newcomers; may be empty
  // The value of an absent key: exactly one of default_yaml, derive and optional. With none of them the key is
  // required.
  std::string default_yaml = {};
  std::string derived = {};  // how `derive` sets it, for people: "model.heads"
  std::function<void(Workload&)> derive = {};
  bool optional = false;
  Condition when = {};
  std::string instead = {};  // a required key may be left out if this one is given
  std::string group = {};    // keys of one group exclude each other; an overlay that sets one removes the others
  bool required() const { return default_yaml.empty() && !derive && !optional; }
};

struct Section {
  std::string path;  // "train.optimizer"
  std::string doc;
  // Expands a single value in place of the section's map to that map; may be empty.
  std::function<Result<Node>(const Node&)> shorthand = {};
  std::string shorthand_doc = {};
};

// A default under a preset, by path.
struct PresetValue {
  std::string path, yaml;
};
struct Preset {
  std::string name;
  std::vector<PresetValue> values;
};

struct Schema {
  std::vector<Section> sections;
  std::vector<Key> keys;
  const Key* key(std::string_view path) const;
  const Section* section(std::string_view path) const;
  // Names of the keys and sections directly under a section, in order; "" is the document.
  std::vector<std::string> names_under(std::string_view section) const;
};

const Schema& schema();  // immutable; built once
const std::vector<PresetValue>* preset_values(std::string_view preset);

// "number, above 0", "gpt | mlp".
std::string type_of(const Key& key);

void add_cluster_keys(Schema& schema);  // number of nodes, time limit, image, folder
void add_volume_keys(Schema& schema);
void add_secrets_key(Schema& schema);
// Add a check to a codec: refuse what looks like a secret, by name or value in a map of variables, by its form in any
// text of a map or list. Their errors show no value.
Codec without_secret_variables(Codec codec);
Codec without_secret_texts(Codec codec, const char* key);

// The place without its column, so that no message shows its source line: it may hold a secret.
Where without_source(Where where);
// Variables that the agent sets for each rank: RANK, SYSTOLE_*, ...
bool is_variable_of_agent(std::string_view name);
// Whether it has the form NAME@PROJECT.iam.gserviceaccount.com, as kubernetes.gcp_service_account requires.
bool is_google_account(std::string_view text);
void add_cost_keys(Schema& schema);  // budget and prices

// Whether `key` is allowed together with `command`. All other keys describe the model and its training.
bool goes_with_command(const Key& key);
// Whether `key` is allowed with workload: serve.
bool goes_with_serving(const Key& key);
// Whether `key` is allowed with this kind of workload.
bool goes_with_kind(const Key& key, const Workload& workload);

// Whether `key` applies to `workload`. REQUIRES: the keys of its conditions are already read.
bool applies(const Key& key, Workload& workload);

std::vector<BrokenRule> broken_rules(const Workload& workload);
void check_mixture(const Workload& workload, std::vector<BrokenRule>& broken);  // part of them
void check_buckets(const Workload& workload, std::vector<BrokenRule>& broken);  // part of them

// The parts of the schema.
void add_model_keys(Schema& schema);
void add_moe_keys(Schema& schema);  // model.moe: experts
void add_mla_keys(Schema& schema);  // model.mla: latent attention
void add_data_keys(Schema& schema);
void add_masking_keys(Schema& schema);  // data.masking
void add_mixture_keys(Schema& schema);  // data.mixture: several sources
void add_bucket_keys(Schema& schema);   // data.buckets: rows of several lengths
void add_train_keys(Schema& schema);
void add_run_keys(Schema& schema);
void add_serve_keys(Schema& schema);  // serve: slots, objective, traffic

// Keys of single targets, each in targets/.
void add_slurm_keys(Schema& schema);
void add_kubernetes_keys(Schema& schema);
void add_queue_keys(std::vector<Key>& keys);  // of kubernetes: queues, topology, identity, metrics
void add_ssh_keys(Schema& schema);
void add_gke_keys(Schema& schema);     // of a cluster that GKE creates
void add_gcloud_keys(Schema& schema);  // of machines that gcloud creates

// Keys of a document beside those of the Workload itself.
constexpr std::string_view kEnvironments = "environments";

}  // namespace systole
