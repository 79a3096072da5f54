#pragma once
// The Workload: what a person asks for in one YAML file, as plain data with every field resolved. schema.cc is the one
// list of keys; reading, strictness, defaults, printing, `systole explain` and docs/reference/keys.md come from it.
// Where a key was left out, its field holds the default that `to_yaml` shows. Immutable after reading; any thread.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/volume.h"
#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/catalog/provisioning.h"
#include "ground/tensor/dtype.h"

namespace systole {

class Node;  // ground/base/document.h

// How often: every so many steps, or every so many seconds, or never. At most one is set.
struct Interval {
  std::int64_t steps = 0;
  Seconds time{};
  bool never() const { return steps == 0 && time == Seconds{}; }
  bool operator==(const Interval&) const = default;
};

// A part of a run: so many steps, or a fraction of the whole ("5%"). At most one is not zero.
struct Portion {
  std::int64_t steps = 0;
  double fraction = 0;
  bool operator==(const Portion&) const = default;
};

struct ModelSpec {
  enum class Family { mlp, gpt, llama, bert, t5 };
  enum class Norm { layer, rms };
  enum class Activation { gelu, gelu_tanh, relu, relu2, silu, tanh, sigmoid };
  enum class Position { learned, rotary, none };
  enum class Loss { cross_entropy, squared_error };
  // How rotary positions stretch to contexts beyond those first trained on: not, or low frequencies divided by factor
  // and high ones kept, as Llama 3.1 (describe/graph/ops/rotary.cc has the formula).
  struct RopeScaling {
    enum class Kind { none, llama3 };
    Kind kind = Kind::none;
    double factor = 1, low_freq_factor = 1, high_freq_factor = 4;
    std::int64_t original_context = 8192;
  };

  // A mixture of experts, each of width `mlp`, in the place of a block's one feed-forward part.
  struct Experts {
    std::int64_t experts = 0;  // 0: none
    std::int64_t top_k = 2;    // that a token goes to
    double capacity_factor = 1.25;
    bool dropless = false;
    std::int64_t group = 0;  // tokens of a row that compete for places; 0: a row
    std::int64_t shared_experts = 0;
    bool normalize = true;
    enum class Scores { softmax, sigmoid } scores = Scores::softmax;
    double scale = 1;               // of what the experts of a token give together
    std::int64_t dense_layers = 0;  // first ones, without experts
    std::int64_t every = 1;         // of the others, the last of each `every` has experts
    std::int64_t dense_mlp = 0;     // width of the one part of layers without
    double balance = 0.01;
    // What a pipeline is cut between: layers, or as many at a time as `every` says.
    std::int64_t periods(std::int64_t of_layers) const { return dense_layers + (of_layers - dense_layers) / every; }
  };

  // Multi-head latent attention: widths of what queries, and keys and values, are made of, and of a head's parts.
  struct Latent {
    std::int64_t q_rank = 0;   // 0: queries are made of the token itself
    std::int64_t kv_rank = 0;  // 0: no latent attention
    std::int64_t nope = 0, rope = 0, value = 0;
  };

  Family family = Family::gpt;
  std::string preset;   // "gpt2-124m"; its values are in the fields below; empty for none
  std::string weights;  // folder of a Hugging Face model that training starts from; empty for none

  // gpt, llama; bert and t5 as far as their keys say
  std::int64_t layers = 0, width = 0, heads = 0;
  std::int64_t kv_heads = 0;     // divides heads; equal to it unless grouped-query
  std::int64_t head = 0;         // numbers a head; width / heads unless given, 0 while that is not whole
  std::int64_t context = 0;      // tokens a row
  std::int64_t vocabulary = 0;   // rows of the embedding, at least the tokenizer's
  std::int64_t mlp = 0;          // hidden width of the feed-forward part
  double mlp_ratio = 0;          // mlp / width where the document says it so, else 0
  std::int64_t window = 0;       // > 0: keys a query sees, itself the last; 0: all before it
  bool parallel_blocks = false;  // attention and feed-forward part read one norm and are added together
  bool gated = false;            // the feed-forward part multiplies by an activated gate
  bool qk_norm = false;          // each head's query and key go through an RMS norm
  Experts moe;
  Latent mla;
  Norm norm = Norm::layer;
  double eps = 1e-5;  // of the norms
  Position position = Position::learned;
  double theta = 10000;  // of rotary positions
  RopeScaling rope_scaling;
  bool tied = true;               // the output projection is the embedding
  std::int64_t adapter_rank = 0;  // > 0: every weight above is frozen and low-rank adapters of this rank are trained
  double adapter_scale = 1;       // of an adapter's contribution

  // t5, whose layers and context above are the encoder's
  std::int64_t decoder_layers = 0;
  std::int64_t target_context = 0;  // tokens a row of answers
  std::int64_t relative_buckets = 32, relative_furthest = 128;

  // all
  Activation activation = Activation::gelu_tanh;
  bool bias = true;
  double dropout = 0;

  // mlp
  std::int64_t inputs = 0, outputs = 0;
  std::vector<std::int64_t> hidden;  // widths of the layers between; empty: linear regression
  Loss loss = Loss::squared_error;

  bool is_decoder() const { return family == Family::gpt || family == Family::llama; }
};

// One set of text files.
struct TextSpec {
  enum class Document { line, blank_line, file };
  enum class InvalidUtf8 { error, replace, bytes };
  enum class Format { by_name, text, jsonl };

  std::vector<std::string> files;  // paths or patterns; empty for a held-out set that is a fraction
  Document document = Document::line;
  InvalidUtf8 invalid_utf8 = InvalidUtf8::error;
  Format format = Format::by_name;
  std::string field = "text";  // of a JSON record
  std::string target;          // of pairs: the field that holds the answer; empty: documents
  Bytes largest_document = kMiB * 64;
};

struct TokenizerSpec {
  enum class Kind { sentencepiece, byte_level_bpe };
  enum class Algorithm { bpe, unigram };

  Kind kind = Kind::sentencepiece;
  Algorithm algorithm = Algorithm::bpe;
  std::int64_t vocabulary = 0;  // tokens to train; 0 when `file` decides
  std::string file;             // a trained model to use instead of training one; empty: train
  Bytes sample = kMiB * 4;      // of training text that the tokenizer is trained on
};

struct DataSpec {
  enum class Kind { text, linear };

  Kind kind = Kind::text;
  TextSpec train, held_out;
  double held_out_fraction = 0;  // of the training documents, by hash, when held_out has no files
  TokenizerSpec tokenizer;
  bool packing = true;    // several documents a row
  std::int64_t seed = 0;  // of the order of rows, of the held-out hash and of synthetic data
  std::string folder;     // where prepared data is kept

  // of a bert's rows: of a row's tokens those to be told, and of those the hidden and the replaced ones
  double masked_share = 0.15, masked_hidden = 0.8, masked_random = 0.1;

  // kind linear: labels = inputs · weights + bias + noise, all drawn from `seed`
  std::int64_t rows = 0, held_out_rows = 0;
  double noise = 0;  // standard deviation
};

struct OptimizerSpec {
  enum class Kind { adamw, sgd };
  enum class Schedule { cosine, linear, warmup_stable_decay, constant };

  Kind kind = Kind::adamw;
  double rate = 0;
  Schedule schedule = Schedule::constant;
  Portion warmup, decay;                         // decay: of warmup_stable_decay alone
  double final_rate = 0;                         // as a fraction of `rate`
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;  // adamw
  double momentum = 0;                           // sgd
  double weight_decay = 0;
  double clip = 0;  // gradient norm, 0 for none
};

struct PrecisionSpec {
  DType parameter = DType::f32, compute = DType::f32, accumulate = DType::f32, reduce = DType::f32;
};

struct RecomputeSpec {
  enum class Kind { none, attention, block, named };
  Kind kind = Kind::none;
  std::vector<std::string> save;  // named: the values that are saved, all others are computed again
};

struct TrainSpec {
  enum class OnDivergence { stop, ignore };

  std::int64_t batch = 0;         // rows a step
  std::int64_t microbatches = 1;  // at most batch; the last may be smaller
  // Where training ends: exactly one is set.
  std::optional<std::int64_t> steps, tokens;
  std::optional<Seconds> time;

  OptimizerSpec optimizer;
  PrecisionSpec precision;
  RecomputeSpec recompute;
  std::int64_t seed = 0;            // of initial weights and dropout
  bool exact = false;               // same bits after any kill, on any number of workers
  std::int64_t logical_shards = 8;  // of the batch, when exact: a power of two
  Interval evaluate;
  std::int64_t evaluate_batches = 0;  // 0: all of the held-out set
  OnDivergence on_divergence = OnDivergence::stop;
  std::int64_t divergence_skips = 0;  // steps in a row without a finite gradient that count as divergence
  double divergence_factor = 0;       // as does a loss far above its lowest level; 0 for never
};

struct CheckpointSpec {
  Interval every;
  std::int64_t keep = 0;        // the newest
  std::int64_t keep_every = 0;  // and each whose step is a multiple; 0 for none
  bool best = false;            // and that of the lowest held-out loss
  bool asynchronous = true;     // written from a copy while training goes on
  std::string folder;           // relative: inside the run's folder
  bool compress = true;         // with zstd, where it helps
  // References to secrets, env:NAME or file:PATH, and a public key in hex; empty: none.
  std::string encryption_key, signing_key, trusted_key;
};

// Where a run begins that goes on from another's checkpoint.
struct ResumeSpec {
  std::string from;  // a run or a folder of checkpoints, with @STEP, @latest or @blessed; latest; blessed; empty: none
};
// Each rank of a program of the user's own has resume.from in this variable, as it stands.
inline constexpr const char* kResumeFrom = "SYSTOLE_RESUME_FROM";

// "4", or "2:8" where there may be more and fewer while it runs.
struct CountRange {
  std::int64_t least = 1, most = 1;
  bool elastic() const { return least != most; }
  bool operator==(const CountRange&) const = default;
};

struct ResourcesSpec {
  std::optional<Bytes> memory;          // limit of the whole process; without: what the machine has
  std::optional<std::int64_t> threads;  // without: what the machine has
  // Of a cluster. Without nodes: 1; without ranks_per_node: its GPUs, else 1.
  std::optional<CountRange> nodes;
  std::optional<std::int64_t> ranks_per_node, gpus_per_node;
  std::optional<Seconds> longest;      // then its cluster ends it
  std::string accelerators;            // what of the catalog, in its words (ground/catalog/hardware.h); empty: not said
  std::optional<std::int64_t> slices;  // of TPUs, over the data-centre network
  std::optional<Provisioning> provisioning;  // on_demand, spot, flex_start or reservation
  std::string reservation;                   // its name
  std::optional<double> price;               // dollars that an hour of one machine costs
};

struct ObjectiveSpec {
  std::optional<double> budget;  // dollars that the run may cost
};

// What a target takes besides; empty: not said.
struct SlurmSpec {
  std::string partition, account, qos, constraint, reservation;
  std::string gpu_type;                 // "a100" of --gpus-per-node=a100:8
  std::optional<CountRange> array;      // one run an index, each with the seed of its own
  std::optional<std::int64_t> at_once;  // of the array's, at most
};
struct KubernetesSpec {
  // Which object runs it, and who starts the ranks of a pod; automatic: what fits (operate/render/cluster_job.h).
  enum class Kind { automatic, job, jobset, pytorchjob, jaxjob, trainjob } kind = Kind::automatic;
  enum class Launcher { automatic, systole, torchrun, program } launcher = Launcher::automatic;
  std::string name_space;                       // "default"
  std::map<std::string, std::string> selector;  // labels of nodes
  std::string service_account;
  // What stands around the job: its queue and place in it (Kueue), who it is to Google, where its metrics are.
  std::string queue, priority, topology, cohort;  // topology: "preferred:block"
  std::optional<std::int64_t> queue_nodes,
      priority_value;   // of queues.yml, which is written where queue_nodes is said
  bool queued = false;  // its nodes by a ProvisioningRequest
  std::string gcp_service_account;
  std::optional<std::int64_t> metrics_port;
};
// A cluster of Google Kubernetes Engine; names are as they are written.
struct GkeSpec {
  std::string project, cluster, location;  // location: a zone, or a region, and then `zone` is of it
  std::string zone, network, machine;      // empty: as location, as cluster, the least that fits
  enum class Driver { latest, standard, manual } driver = Driver::latest;
  enum class Image { cos, ubuntu } image = Image::cos;
};
// Machines that gcloud makes, by the words of its command; names are as they are written.
struct GcloudSpec {
  enum class Create { nothing, instances, tpu_vm, node_pool, cluster } create = Create::nothing;
  std::string name, project, zone;             // zone: or a region
  std::string machine, accelerator;            // "a2-highgpu-4g", "type=nvidia-tesla-a100,count=4", "v4-8"
  std::map<std::string, std::string> options;  // others, without their dashes; empty: none follows
};
struct SshSpec {
  std::vector<std::string> hosts;  // [user@]host[:port]
};

struct ProbeSpec {
  std::vector<std::string> values, save;  // globs; save: the tensors too. Both empty: nothing is shown
  std::optional<std::int64_t> every;      // steps; without: 10
  std::vector<std::string> all() const {
    std::vector<std::string> globs = values;
    globs.insert(globs.end(), save.begin(), save.end());
    return globs;
  }
};

struct ObserveSpec {
  std::int64_t every = 0;                    // steps from one line of progress to the next
  std::optional<std::int64_t> replay_check;  // steps from one to the next whose gradients are computed twice
};

// What is done when ranks are late, lost, or asked to stop.
struct RanksSpec {
  std::optional<Seconds> patience, notice;  // without: kPatience, kNotice
  std::string preemption;                   // off, or the address of a flag; empty: found out
  std::optional<std::int64_t> retries;      // of its cluster, after a preemption or a loss; without: kRetries
  bool tls = false;                         // between processes of the run
  static constexpr std::int64_t kRetries = 10;
  static constexpr Seconds kPatience{60.0}, kNotice{30.0};
};

// Parameters by name: which axes of the mesh cut which of their dims, by the dims' names.
struct ParameterSharding {
  std::string names;  // "blocks.*.attn.q"; '*' is any part of a name
  std::vector<std::pair<std::string, std::vector<std::string>>> dims;
  bool operator==(const ParameterSharding&) const = default;
};

// How stages of the axis pipe take turns.
struct PipelineSpec {
  enum class Schedule { one_f_one_b, gpipe } schedule = Schedule::one_f_one_b;
  std::int64_t chunks = 1;           // of each stage; more: interleaved
  std::vector<std::int64_t> layers;  // of each chunk of the model, in its order; empty: as even as can be
  bool operator==(const PipelineSpec&) const = default;
};

// What the axis fsdp stores in parts; each includes those before it.
enum class StoredInParts { nothing, state, gradients, parameters };

// How keys and values of other devices along the axis context come to a device.
enum class ContextParallel { all_gather, ring };

struct Workload {
  enum class Kind { train, machines };  // machines: nothing runs, what is made is said

  std::int64_t version = 0;  // of the document
  std::string name;
  Kind kind = Kind::train;
  std::vector<std::string> command;  // a program of the user's, in place of model, data and train; empty: none
  ModelSpec model;
  DataSpec data;
  TrainSpec train;
  CheckpointSpec checkpoint;
  ResumeSpec resume;
  std::vector<std::pair<std::string, std::int64_t>> mesh;  // axes, outermost first; empty: one device
  std::vector<ParameterSharding> sharding;
  StoredInParts fully_sharded = StoredInParts::parameters;
  ContextParallel context_parallel = ContextParallel::all_gather;
  PipelineSpec pipeline;
  ResourcesSpec resources;
  ObjectiveSpec objective;
  RanksSpec ranks;
  ObserveSpec observe;
  ProbeSpec probe;
  std::map<std::string, std::string> labels;
  // Where others start it.
  std::string image;                           // of its container
  std::map<std::string, std::string> env;      // of every rank
  std::map<std::string, std::string> claims;   // where a node mounts what, by path: persistent volume claims
  std::map<std::string, VolumeSpec> volumes;   // the same, of every kind
  std::map<std::string, std::string> secrets;  // of every rank's environment: references (describe/spec/secret.h)
  std::string folder;                          // where its runs lie, seen by all nodes; empty: runs
  SlurmSpec slurm;
  KubernetesSpec kubernetes;
  GkeSpec gke;
  GcloudSpec gcloud;
  SshSpec ssh;

  // Whether it trains a model of ours: what runs is no program of the user's, and something runs.
  bool has_model() const { return command.empty() && kind == Kind::train; }
};

// What files that a workload names say of its keys. `fixed`: the document may not say otherwise.
struct ImportedValue {
  std::string path, yaml;
  bool fixed = false;
};

struct WorkloadOptions {
  std::string environment;        // which of `environments` is laid over the document; empty for none
  std::vector<std::string> sets;  // "train.time=15s", laid over both, in order
  // What the weights in a folder (model.weights) say; without it they say nothing.
  std::function<Result<std::vector<ImportedValue>>(const std::string& folder)> weights = {};
};

// Reads and resolves a document; `filename` is for messages. Errors: invalid (one Error whose `others` hold all further
// ones, each with place, the line of source and a hint), unsupported (a newer version; a key that nothing runs yet).
Result<Workload> read_workload(std::string_view text, const std::string& filename, const WorkloadOptions& options = {});

// The same of a document that is already a tree; messages have places but no lines of source.
Result<Workload> workload_from(const Node& document, const std::string& filename);

// The whole document, defaults and all, in the schema's order; reads back to the same Workload.
std::string to_yaml(const Workload& workload);
Node to_node(const Workload& workload);

// Values that model.preset may take.
std::vector<std::string> preset_names();

// Text on a key ("train.optimizer.rate", or "rate" when that is the end of one key alone), a section ("train") or the
// list of all ("keys"). Errors: not_found with the nearest keys.
Result<std::string> explain_key(std::string_view topic);

// docs/reference/keys.md.
std::string keys_reference();

}  // namespace systole
