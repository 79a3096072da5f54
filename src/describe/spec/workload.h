#pragma once
// The Workload: the content of one YAML file as plain data, with every field resolved. schema.cc is the one list of
// keys; reading, strictness, defaults, printing, `systole explain` and docs/reference/keys.md come from it. The field
// of an absent key holds the default that `to_yaml` shows. Immutable after reading; safe from any thread.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/count_range.h"
#include "describe/spec/families/model_spec.h"
#include "describe/spec/serve_spec.h"
#include "describe/spec/targets/gcloud_keys.h"
#include "describe/spec/targets/gke_keys.h"
#include "describe/spec/targets/kubernetes_keys.h"
#include "describe/spec/targets/slurm_keys.h"
#include "describe/spec/targets/ssh_keys.h"
#include "describe/spec/volume.h"
#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/catalog/provisioning.h"
#include "ground/mesh/sharding.h"
#include "ground/tensor/dtype.h"

namespace systole {

class Node;  // ground/base/document.h

// An interval of steps or of seconds, or never. At most one is set.
struct Interval {
  std::int64_t steps = 0;
  Seconds time{};
  bool never() const { return steps == 0 && time == Seconds{}; }
  bool operator==(const Interval&) const = default;
};

// A share of a run: a number of steps, or a fraction of the whole ("5%"). At most one is not zero.
struct Portion {
  std::int64_t steps = 0;
  double fraction = 0;
  bool operator==(const Portion&) const = default;
};

std::int64_t steps_of(const Portion& portion, std::int64_t whole);  // whole: the run's steps

// A set of text files.
struct TextSpec {
  enum class Document { line, blank_line, file };
  enum class InvalidUtf8 { error, replace, bytes };
  enum class Format { by_name, text, jsonl, tfrecord, array_record, webdataset, mds, csv, numpy, parquet };
  enum class OnBadRecord { error, skip };

  std::vector<std::string> files;  // paths or patterns; empty for a held-out set given as a fraction
  Document document = Document::line;
  InvalidUtf8 invalid_utf8 = InvalidUtf8::error;
  Format format = Format::by_name;
  std::string field = "text";  // of a record
  std::string target;          // for pairs: the field with the answer; empty: documents
  Bytes largest_document = kMiB * 64;
  OnBadRecord on_bad_record = OnBadRecord::error;
  std::int64_t bad_records = 1000;  // skipped at most
  std::string where;    // which records are kept; empty: all. Of data.train, and the same for held-out files
  bool dedupe = false;  // a text that was there before is left out. As `where`
};

struct TokenizerSpec {
  enum class Kind { sentencepiece, byte_level_bpe };
  enum class Algorithm { bpe, unigram };

  Kind kind = Kind::sentencepiece;
  Algorithm algorithm = Algorithm::bpe;
  std::int64_t vocabulary = 0;  // size of a trained vocabulary; 0 when `file` decides
  std::string file;             // a trained tokenizer model to use; empty: train one
  Bytes sample = kMiB * 4;      // amount of training text to train the tokenizer on
};

// Several sources of text, drawn from in proportion; in place of data.train's files.
struct MixtureSpec {
  enum class By { tokens, documents, bytes };
  enum class Exhausted { repeat, stop, rescale };
  struct Source {
    std::string name;
    TextSpec text;
    std::optional<double> weight;        // of all sources or of none: by size
    std::optional<std::int64_t> epochs;  // at most so many; none: without end
  };
  struct Phase {
    Portion from;                 // of the run's steps
    std::vector<double> weights;  // one of each source; 0: not in this phase
  };
  std::vector<Source> sources;
  By by = By::tokens;      // what the weights count
  double temperature = 1;  // weights by size: size^(1/temperature)
  Exhausted exhausted = Exhausted::repeat;
  std::vector<Phase> schedule;  // empty: the same weights throughout
};

// Rows of a few lengths in place of one.
struct BucketsSpec {
  bool automatic = false;           // the edges follow from the data's lengths
  std::vector<std::int64_t> edges;  // lengths of rows, ascending; empty if automatic
  // If automatic: the least number of edges that keep the share of padding to `waste`, at most `shapes`.
  double waste = 0.05;
  std::int64_t shapes = 8;
};

struct DataSpec {
  enum class Kind { text, linear };

  Kind kind = Kind::text;
  TextSpec train, held_out;
  MixtureSpec mixture;           // without sources: data.train
  double held_out_fraction = 0;  // fraction of the training documents, chosen by hash, when held_out has no files
  TokenizerSpec tokenizer;
  bool packing = true;                         // several documents per row
  std::optional<BucketsSpec> buckets;          // of rows by length; then packing is false
  bool drop_remainder = false;                 // rows at an epoch's end that do not fill a step
  std::int64_t seed = 0;                       // for row order, the held-out hash and synthetic data
  std::string folder;                          // folder for prepared data
  std::string cache_folder;                    // of objects that are read from buckets
  std::optional<Bytes> cache_limit;            // of all of them; none: what the disk has
  std::optional<Bytes> cache_memory;           // of those also kept in shared memory; none: no such tier
  std::optional<std::int64_t> readers, queue;  // threads that read rows, batches in the queue; nothing: the plan says

  // bert: fraction of a row's tokens to predict; of those, the fractions replaced by the mask and by a random token
  double masked_share = 0.15, masked_hidden = 0.8, masked_random = 0.1;

  // kind linear: labels = inputs · weights + bias + noise, all drawn from `seed`
  std::int64_t rows = 0, held_out_rows = 0;
  double noise = 0;  // standard deviation

  bool has_held_out() const;
  void hold_nothing_out();
};

const char* name_of(DataSpec::Kind kind);  // "text"
DataSpec::Kind data_of(Task task);         // the kind of data for a model of that task

struct OptimizerSpec {
  enum class Kind { adamw, sgd };
  enum class Schedule { cosine, linear, warmup_stable_decay, constant };

  Kind kind = Kind::adamw;
  double rate = 0;
  Schedule schedule = Schedule::constant;
  Portion warmup, decay;                         // decay: for warmup_stable_decay only
  double final_rate = 0;                         // as a fraction of `rate`
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;  // adamw
  double momentum = 0;                           // sgd
  double weight_decay = 0;
  double clip = 0;  // gradient norm limit, 0: none
};

struct PrecisionSpec {
  DType parameter = DType::f32, compute = DType::f32, accumulate = DType::f32, reduce = DType::f32;
};

struct RecomputeSpec {
  enum class Kind { none, attention, block, named };
  Kind kind = Kind::none;
  std::vector<std::string> save;  // for policy named: the values to save; all others are recomputed
};

struct TrainSpec {
  enum class OnDivergence { stop, ignore };

  std::int64_t batch = 0;         // rows per step
  std::int64_t microbatches = 1;  // at most batch; the last may be smaller
  // When training ends: exactly one is set.
  std::optional<std::int64_t> steps, tokens;
  std::optional<Seconds> time;

  OptimizerSpec optimizer;
  PrecisionSpec precision;
  RecomputeSpec recompute;
  std::int64_t seed = 0;            // for initial weights and dropout
  bool exact = false;               // same bits after any kill, on any number of workers
  std::int64_t logical_shards = 8;  // of the batch in exact training: a power of two
  Interval evaluate;
  std::int64_t evaluate_batches = 0;  // 0: all of the held-out set
  OnDivergence on_divergence = OnDivergence::stop;
  std::int64_t divergence_skips = 0;  // consecutive steps without a finite gradient that count as divergence
  double divergence_factor = 0;       // a loss above this times its lowest level counts as divergence; 0: never
};

struct CheckpointSpec {
  Interval every;
  std::int64_t keep = 0;        // number of newest checkpoints to keep
  std::int64_t keep_every = 0;  // also keep each whose step is a multiple; 0: none
  bool best = false;            // also keep that of the lowest held-out loss
  bool asynchronous = true;     // written from a copy while training continues
  std::string folder;           // a relative path is inside the run's folder
  bool compress = true;         // with zstd, where it makes the data smaller
  // Secret references (env:NAME or file:PATH) for the first two, a public key in hex for the last; empty: none.
  std::string encryption_key, signing_key, trusted_key;
};

// The checkpoint that a new run starts from.
struct ResumeSpec {
  std::string from;  // a run or folder of checkpoints, with @STEP, @latest or @blessed; latest; blessed; empty: none
};
// Environment variable that passes resume.from, unchanged, to each rank of a user's program.
inline constexpr const char* kResumeFrom = "SYSTOLE_RESUME_FROM";

// What a user's program loads its samples by: processes of each rank that pass batches through shared memory.
struct LoaderSpec {
  std::optional<std::int64_t> workers, batch;  // processes of a rank; samples of a batch, of a rank
  std::optional<Bytes> sample;                 // decoded, as it is passed
  std::int64_t prefetch = 2;                   // batches that each has ready (PyTorch's default)
};

struct ResourcesSpec {
  std::optional<Bytes> memory;          // limit of the whole process; unset: the machine's memory
  std::optional<std::int64_t> threads;  // unset: the machine's threads
  // For clusters. Unset: 1 node; ranks_per_node its GPUs, else 1.
  std::optional<CountRange> nodes;
  std::optional<std::int64_t> ranks_per_node, gpus_per_node;
  std::optional<Seconds> longest;      // time limit, enforced by the cluster
  std::string accelerators;            // accelerators by catalog name (ground/catalog/hardware.h); empty: not given
  std::optional<std::int64_t> slices;  // TPU slices, connected by the data-centre network
  std::optional<Provisioning> provisioning;  // on_demand, spot, flex_start or reservation
  std::string reservation;                   // name of the reservation
  std::optional<DollarsPerHour> price;       // per machine
  LoaderSpec loader;                         // of a user's program
};

struct ObjectiveSpec {
  std::optional<Dollars> budget;  // limit on the cost of the run
};

struct ProbeSpec {
  std::vector<std::string> values, save;  // globs; save: store the tensors too. Both empty: no probes
  std::optional<std::int64_t> every;      // steps; unset: 10
  std::vector<std::string> all() const {
    std::vector<std::string> globs = values;
    globs.insert(globs.end(), save.begin(), save.end());
    return globs;
  }
};

struct ObserveSpec {
  std::int64_t every = 0;                    // steps between lines of progress
  std::optional<std::int64_t> replay_check;  // steps between checks that compute gradients twice
};

// Handling of late ranks, lost ranks, and requests to stop.
struct RanksSpec {
  std::optional<Seconds> patience, notice;  // unset: kPatience, kNotice
  std::string preemption;                   // off, or the address of a flag; empty: detected
  std::optional<std::int64_t> retries;      // by its cluster, after a preemption or a loss; unset: kRetries
  bool tls = false;                         // TLS between the processes of the run
  static constexpr std::int64_t kRetries = 10;
  static constexpr Seconds kPatience{60.0}, kNotice{30.0};
};

// Explicit sharding of parameters, selected by name: mesh axes and the dims, by name, that they shard.
struct ParameterSharding {
  std::string names;  // "blocks.*.attn.q"; '*' matches any part of a name
  std::vector<std::pair<std::string, std::vector<std::string>>> dims;
  bool operator==(const ParameterSharding&) const = default;
};

// Schedule of the pipeline stages along the axis pipe.
struct PipelineSpec {
  enum class Schedule { one_f_one_b, gpipe } schedule = Schedule::one_f_one_b;
  std::int64_t chunks = 1;           // per stage; more than 1: interleaved schedule
  std::vector<std::int64_t> layers;  // per chunk of the model, in order; empty: as even as possible
  bool operator==(const PipelineSpec&) const = default;
};

// How a device gets the keys and values of the other devices along the axis context.
enum class ContextParallel { all_gather, ring };

struct Workload {
  // machines: creates machines and runs nothing; serve: a model behind HTTP, which is planned and rendered here and run
  // by `systole serve`.
  enum class Kind { train, machines, serve };

  std::int64_t version = 0;  // of the document
  std::string name;
  Kind kind = Kind::train;
  std::vector<std::string> command;  // a user's program, instead of model, data and train; empty: none
  ModelSpec model;
  DataSpec data;
  TrainSpec train;
  CheckpointSpec checkpoint;
  ResumeSpec resume;
  std::vector<std::pair<std::string, std::int64_t>> mesh;  // axes, outermost first; empty: one device
  std::vector<ParameterSharding> sharding;
  ZeroStage fully_sharded = ZeroStage::parameters;
  ContextParallel context_parallel = ContextParallel::all_gather;
  PipelineSpec pipeline;
  ResourcesSpec resources;
  ObjectiveSpec objective;
  RanksSpec ranks;
  ObserveSpec observe;
  ProbeSpec probe;
  std::map<std::string, std::string> labels;
  // For clusters and launchers.
  std::string image;                           // container image
  std::map<std::string, std::string> env;      // for every rank
  std::map<std::string, std::string> claims;   // persistent volume claims by mount path in each node
  std::map<std::string, VolumeSpec> volumes;   // volumes of every kind by mount path
  std::map<std::string, std::string> secrets;  // variables of every rank, as references (describe/spec/secret.h)
  std::string folder;                          // folder of the runs, visible to all nodes; empty: runs
  SlurmSpec slurm;
  KubernetesSpec kubernetes;
  GkeSpec gke;
  GcloudSpec gcloud;
  SshSpec ssh;
  ServeSpec serve;  // of kind serve

  // Whether it trains a model of Systole: not a user's program, nor serving, nor machines alone.
  bool has_model() const { return command.empty() && kind == Kind::train; }
  // Of its mesh; each runs as a rank of its own.
  std::int64_t num_devices() const {
    std::int64_t devices = 1;
    for (const auto& [axis, size] : mesh) devices *= size;
    return devices;
  }
};

// A value of a key that comes from a file which the workload names. `fixed`: the document must agree.
struct ImportedValue {
  std::string path, yaml;
  bool fixed = false;
};

struct WorkloadOptions {
  std::string environment;        // the entry of `environments` that overrides the document; empty: none
  std::vector<std::string> sets;  // "train.time=15s", overrides of both, in order
  // Reads values from the folder of weights (model.weights); unset: none are read.
  std::function<Result<std::vector<ImportedValue>>(const std::string& folder)> weights = {};
};

// Reads and resolves a document; `filename` is for messages. Errors: invalid (one Error whose `others` hold all further
// ones, each with place, source line and a hint), unsupported (a newer version; a key that is not implemented yet).
Result<Workload> read_workload(std::string_view text, const std::string& filename, const WorkloadOptions& options = {});

// The same for a parsed document; messages have places but no source lines.
Result<Workload> workload_from(const Node& document, const std::string& filename, const WorkloadOptions& options = {});

// The complete document with defaults, in the schema's order. It reads back to the same Workload.
std::string to_yaml(const Workload& workload);
Node to_node(const Workload& workload);

// The values of model.preset.
std::vector<std::string> preset_names();

// Help on a key ("train.optimizer.rate", or a unique ending such as "rate"), a section ("train"), or the list of all
// ("keys"). Errors: not_found with the nearest keys.
Result<std::string> explain_key(std::string_view topic);

// docs/reference/keys.md.
std::string keys_reference();
// The rows of its tables for the keys that begin with one of `prefixes`, as one table; empty: none does.
std::string keys_table(std::span<const std::string> prefixes);

}  // namespace systole
