#pragma once
// The schema: every key of the Workload document, once, in the order in which it is printed.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/codec.h"

namespace systole {

// A key means something only while another key has one of these values, or with no values any; no key: always.
struct Condition {
  std::string key;
  std::vector<std::string> values;
};

struct Key {
  std::string path;  // "train.optimizer.rate"
  Codec codec;
  std::string doc;        // one line
  std::string more = {};  // what a newcomer asks next; may be empty
  // Where its value comes from when the document has none: exactly one of default_yaml, derive and optional; with none
  // of them the key is required.
  std::string default_yaml = {};
  std::string derived = {};  // for people: "model.heads"
  std::function<void(Workload&)> derive = {};
  bool optional = false;
  Condition when = {};
  std::string group = {};  // keys of one group exclude each other; an overlay that sets one takes the others away
  bool required() const { return default_yaml.empty() && !derive && !optional; }
};

struct Section {
  std::string path;  // "train.optimizer"
  std::string doc;
  // A single value in place of the section's map, as the map that it stands for; none if empty.
  std::function<Result<Node>(const Node&)> shorthand = {};
  std::string shorthand_doc = {};
};

// A default that holds under a preset, by path.
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

const Schema& schema();  // immutable; made once
const std::vector<PresetValue>* preset_values(std::string_view preset);
std::vector<Preset> encoder_presets();  // of bert and t5

// Defaults that hold for a family, where it departs from the keys' own.
struct FamilyDefaults {
  ModelSpec::Family family;
  const char* name;
  std::vector<PresetValue> values;
};
const std::vector<FamilyDefaults>& family_defaults();

// "number, above 0", "gpt | mlp".
std::string type_of(const Key& key);

void add_cluster_keys(Schema& schema);  // of where others start it
void add_volume_keys(Schema& schema);
void add_secrets_key(Schema& schema);
// Refuse what looks like a secret in a map of variables, by name or value, or in any text of a map or list by its form.
// No error of theirs shows a value.
Codec without_secret_variables(Codec codec);
Codec without_secret_texts(Codec codec, const char* key);
void add_queue_keys(std::vector<Key>& keys);  // of kubernetes: what stands around a job

// A place whose line of source no message shows: what stands there may be a secret.
Where without_source(Where where);
// Set by the agent for each rank: RANK, SYSTOLE_*, ...
bool is_variable_of_agent(std::string_view name);
void add_gke_keys(Schema& schema);     // of a cluster that is made for it
void add_gcloud_keys(Schema& schema);  // of machines that are made
void add_cost_keys(Schema& schema);    // of money

// Whether `key` may stand beside `command`: all others are of the model and its training.
bool goes_with_command(const Key& key);

// Whether `key` means something for `workload`, whose conditions' keys are already read.
bool applies(const Key& key, Workload& workload);

// A rule over several keys that does not hold.
struct Broken {
  std::vector<std::string> keys;  // those it speaks of, the one whose place is shown first
  ErrorKind kind = ErrorKind::invalid;
  std::string message, hint;
};
std::vector<Broken> broken_rules(const Workload& workload);

// The parts of the schema.
void add_model_keys(Schema& schema);
void add_t5_keys(Schema& schema);   // of model, those that no other family has
void add_moe_keys(Schema& schema);  // of model, experts
void add_mla_keys(Schema& schema);  // of model, latent attention
void add_data_keys(Schema& schema);
void add_masking_keys(Schema& schema);  // of data
void add_train_keys(Schema& schema);
void add_run_keys(Schema& schema);
void add_cluster_keys(Schema& schema);  // of where others start it

// What stands around the Workload's own keys in a document.
constexpr std::string_view kEnvironments = "environments";

}  // namespace systole
