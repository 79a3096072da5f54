// Keys around the model and its training: the document itself, checkpoints, layout, resources, reports; and names
// reserved for later.
#include "describe/spec/schema.h"

namespace systole {
namespace {

bool is_reference(const std::string& text) { return text.starts_with("env:") || text.starts_with("file:"); }
bool is_hex_key(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos;
}

bool is_flag(const std::string& text) { return text == "off" || text.starts_with("http://"); }

// A text that is not a reference may be the secret itself, so errors do not repeat it.
Codec key_codec(Field<std::string> at, bool (*is_one)(const std::string&), const char* expected) {
  Codec codec = text_codec(at);
  codec.type = expected;
  codec.read = [at, is_one, expected, read = codec.read](const Node& node, Workload& w) -> Status {
    TRY(read(node, w));
    if (is_one(at(w))) return {};
    return error(ErrorKind::invalid, "this is not {}", expected).at(without_source(node.where()));
  };
  return codec;
}

void add_secret_keys(std::vector<Key>& keys) {
  keys.push_back({.path = "checkpoint.encryption_key",
                  .codec = key_codec(AT(checkpoint.encryption_key), is_reference, "env:NAME or file:PATH"),
                  .doc = "Checkpoints are encrypted with the key that stands there: 64 hex digits.",
                  .more =
                      "AES-256-GCM; names, shapes and types of tensors stay readable. The key itself is never in a "
                      "workload or a run's folder: `openssl rand -hex 32` makes one. Who goes on, generates or "
                      "exports from such a checkpoint needs it, and without it nobody can. docs/guide/checkpoints.md",
                  .optional = true});
  keys.push_back({.path = "checkpoint.signing_key",
                  .codec = key_codec(AT(checkpoint.signing_key), is_reference, "env:NAME or file:PATH"),
                  .doc = "Checkpoints are signed with the Ed25519 key that stands there: 64 hex digits.",
                  .more = "From then on only checkpoints signed by it are read. `systole ckpt public-key` prints the "
                          "public key, with which others check the signature (checkpoint.trusted_key).",
                  .optional = true});
  keys.push_back({.path = "checkpoint.trusted_key",
                  .codec = key_codec(AT(checkpoint.trusted_key), is_hex_key, "64 hex digits"),
                  .doc = "Only checkpoints signed by this public key are read.",
                  .optional = true});
}

Codec resume_codec() {
  Codec codec = text_codec(AT(resume.from));
  codec.type = "RUN, RUN@STEP, a folder of checkpoints, latest or blessed";
  codec.read = [read = codec.read](const Node& node, Workload& w) -> Status {
    TRY(read(node, w));
    return w.resume.from.empty() ? node.wrong("a run or a folder of checkpoints") : Status();
  };
  return codec;
}

void add_resume_keys(std::vector<Key>& keys) {
  keys.push_back(
      {.path = "resume.from",
       .codec = resume_codec(),
       .doc = "A new run begins from this checkpoint of another run: parameters, optimizer, step and place "
              "in the data.",
       .more = "A run's folder, name or number, or a folder of checkpoints, and then its newest checkpoint; "
               "@500 behind it is that of step 500, @blessed the last that `systole ckpt bless` marked. "
               "latest and blessed alone are of the newest run that has one. Model, data and optimizer "
               "must be the other run's; train.steps counts from its first step. With command it is the program's "
               "to read: each rank has it in SYSTOLE_RESUME_FROM. "
               "docs/guide/checkpoints.md",
       .optional = true});
}

void add_rank_keys(std::vector<Key>& keys) {
  keys.push_back({.path = "ranks.patience",
                  .codec = optional_seconds_codec(AT(ranks.patience)),
                  .doc = "How long a rank may keep the others waiting before it counts as lost. Without it, 60s.",
                  .more = "Then all ranks end and begin again from the newest checkpoint.",
                  .optional = true});
  keys.push_back({.path = "ranks.notice",
                  .codec = optional_seconds_codec(AT(ranks.notice)),
                  .doc = "How long a run has to save when it is asked to stop, by SIGTERM or by a preemption. Without "
                         "it, 30s.",
                  .more = "A save that would take longer is not begun: the run goes on from the checkpoint before. "
                          "Google's Spot VMs give 30 s.",
                  .optional = true});
  keys.push_back({.path = "ranks.preemption",
                  .codec = key_codec(AT(ranks.preemption), is_flag, "off, or http://HOST[:PORT]/PATH"),
                  .doc = "Where it is said that this machine will be taken away: off, or an address.",
                  .more = "Without it Google's metadata server is asked where this machine is one of theirs. An "
                          "address, http://HOST[:PORT]/PATH, is asked every second; TRUE means soon.",
                  .optional = true});
  keys.push_back(
      {.path = "ranks.tls",
       .codec = flag_codec(AT(ranks.tls)),
       .doc = "What ranks and nodes of a run say to each other over a network is encrypted. Without it, not.",
       .more = "TLS 1.3 with a key that is derived of the run's token; the same on all nodes. Ranks of one "
               "host share memory all the same, and a program of your own speaks as it does. "
               "docs/guide/many-ranks.md",
       .optional = true});
}

}  // namespace

void add_run_keys(Schema& schema) {
  schema.sections.push_back({"checkpoint", "Saved states, from which a killed run goes on.", {}, {}});
  schema.sections.push_back({"resume", "Where a run begins that goes on from another's checkpoint.", {}, {}});
  schema.sections.push_back({"resources", "What may be used.", {}, {}});
  schema.sections.push_back(
      {"pipeline", "Pipeline parallelism: the schedule of the stages along the mesh's axis pipe.", {}, {}});
  schema.sections.push_back(
      {"ranks", "When ranks are late or lost, when a run is asked to stop, and how its processes speak.", {}, {}});
  schema.sections.push_back({"observe", "What is shown while it runs.", {}, {}});
  schema.sections.push_back(
      {"probe", "Values that are shown while it trains: range, mean, spread, and what is no number.", {}, {}});
  auto& keys = schema.keys;
  keys.push_back({.path = "checkpoint.every",
                  .codec = interval_codec(AT(checkpoint.every)),
                  .doc = "From one checkpoint to the next; the end of training is saved anyway.",
                  .default_yaml = "5min"});
  keys.push_back({.path = "checkpoint.keep",
                  .codec = count_codec(AT(checkpoint.keep), 1, 1'000'000),
                  .doc = "How many of the newest are kept.",
                  .default_yaml = "2"});
  keys.push_back({.path = "checkpoint.keep_every",
                  .codec = count_codec(AT(checkpoint.keep_every), 0, 1'000'000'000'000),
                  .doc = "Beside these, each one whose step is a multiple of this is kept; 0: none.",
                  .default_yaml = "0"});
  keys.push_back({.path = "checkpoint.best",
                  .codec = bool_codec(AT(checkpoint.best)),
                  .doc = "Beside these, the one with the lowest held-out loss is kept.",
                  .default_yaml = "false"});
  keys.push_back({.path = "checkpoint.asynchronous",
                  .codec = bool_codec(AT(checkpoint.asynchronous)),
                  .doc = "Training goes on while a checkpoint is written, from a copy of the state in memory.",
                  .more = "Without it training waits until the checkpoint is written, and needs no memory for a copy: "
                          "with AdamW three numbers less a parameter.",
                  .default_yaml = "true"});
  keys.push_back(
      {.path = "checkpoint.folder",
       .codec = text_codec(AT(checkpoint.folder)),
       .doc = "Where they go, a path or file:///path; a relative path is inside the run's folder.",
       .more = "An absolute one, as on another disk, is of one run: another that begins there is refused. "
               "gs://BUCKET/FOLDER is in Cloud Storage, s3://BUCKET/FOLDER in S3. Stores of other schemes are refused "
               "when the workload is read.",
       .default_yaml = "checkpoints"});
  keys.push_back({.path = "checkpoint.compress",
                  .codec = bool_codec(AT(checkpoint.compress)),
                  .doc = "Chunks of which a sample shrinks by 10% are compressed with zstd; the others are not.",
                  .default_yaml = "true"});
  add_secret_keys(keys);
  add_resume_keys(keys);
  keys.push_back(
      {.path = "mesh",
       .codec = mesh_codec(AT(mesh)),
       .doc = "Device mesh: axes and their sizes, outermost first.",
       .more = "data and fsdp shard the batch (data parallelism); fsdp also shards parameters, gradients and "
               "optimizer state (fully_sharded); context shards rows along their tokens; expert shards rows and "
               "the experts of a mixture (model.moe), to which tokens go; model is tensor parallelism, of heads, "
               "the hidden width of feed-forward parts and the vocabulary, and between them shards the sequence; "
               "pipe cuts the layers into stages (pipeline). "
               "Without it there is one device.",
       .optional = true});
  keys.push_back({.path = "fully_sharded",
                  .codec = choice_codec<ZeroStage>(AT(fully_sharded), {{"nothing", ZeroStage::nothing},
                                                                       {"state", ZeroStage::state},
                                                                       {"gradients", ZeroStage::gradients},
                                                                       {"parameters", ZeroStage::parameters}}),
                  .doc = "What the mesh's axis fsdp shards, each with those before it (ZeRO's stages 1 to 3).",
                  .more = "parameters: a layer's are all-gathered when it is computed. gradients: they are "
                          "reduce-scattered each microbatch. state: gradients are whole until the step's end.",
                  .default_yaml = "parameters"});
  keys.push_back(
      {.path = "context_parallel",
       .codec = choice_codec<ContextParallel>(
           AT(context_parallel), {{"all_gather", ContextParallel::all_gather}, {"ring", ContextParallel::ring}}),
       .doc = "Context parallelism: how keys and values reach the devices of the mesh's axis context.",
       .more = "all_gather: all of a row's are gathered in each layer, before they are used. ring: ring attention, in "
               "which they go round from device to device while attention runs, so that memory does not grow with "
               "the axis; their gradients are sent in f32.",
       .default_yaml = "all_gather"});
  keys.push_back({.path = "pipeline.schedule",
                  .codec = choice_codec<PipelineSpec::Schedule>(
                      AT(pipeline.schedule),
                      {{"1f1b", PipelineSpec::Schedule::one_f_one_b}, {"gpipe", PipelineSpec::Schedule::gpipe}}),
                  .doc = "Order of the microbatches' forward and backward passes on the stages.",
                  .more = "1f1b: a backward as soon as there is one, so that a stage holds no more microbatches than "
                          "there are stages behind it. gpipe: all forwards first; holds all microbatches.",
                  .default_yaml = "1f1b"});
  keys.push_back({.path = "pipeline.chunks",
                  .codec = count_codec(AT(pipeline.chunks), 1, 1024),
                  .doc = "Model chunks (virtual stages) on each stage; with several the pipeline is interleaved.",
                  .more = "The bubble shrinks by this factor, and activations are sent as often more. Microbatches "
                          "must be a multiple of the stages.",
                  .default_yaml = "1"});
  keys.push_back({.path = "pipeline.layers",
                  .codec = counts_codec(AT(pipeline.layers), 1, 1 << 20),
                  .doc = "Layers of each chunk, in the model's order; chunk c is on stage c mod stages.",
                  .more = "Without it they are as even as can be.",
                  .optional = true});
  keys.push_back({.path = "sharding",
                  .codec = sharding_codec(AT(sharding)),
                  .doc = "Which axes of the mesh cut which dims of the parameters of these names.",
                  .more = "'*' in a name is any part of it: { 'blocks.*.mlp.*': { mlp: model, embed: fsdp } }. What "
                          "is said of a parameter replaces its default, and no two rules may match one parameter. "
                          "`systole plan` shows where each lies.",
                  .optional = true});
  keys.push_back({.path = "resources.memory",
                  .codec = optional_bytes_codec(AT(resources.memory), Bytes(1)),
                  .doc = "Limit of the whole process; what does not fit is refused before it starts.",
                  .more = "Without it the limit is what the machine, or the container, has.",
                  .optional = true});
  keys.push_back({.path = "resources.threads",
                  .codec = optional_count_codec(AT(resources.threads), 1, 4096),
                  .doc = "Threads that compute; no more than the process may use cores, by affinity and control group. "
                         "Without it, as many.",
                  .optional = true});
  add_rank_keys(keys);
  keys.push_back({.path = "observe.every",
                  .codec = count_codec(AT(observe.every), 1, 1'000'000'000),
                  .doc = "Steps from one line of progress to the next. Every step is in the run's events anyway.",
                  .default_yaml = "10"});
  keys.push_back({.path = "observe.replay_check",
                  .codec = optional_count_codec(AT(observe.replay_check), 1, 1'000'000'000),
                  .doc = "Every so many steps the gradients are computed twice, and must be the same bits.",
                  .more = "Finds a flipped bit of memory or a processor that errs, on the rank where it is, before the "
                          "gradients are used: that rank is ended and the run goes on from its checkpoint. It costs "
                          "one forward and backward more at each step that is checked: at every hundredth, 1%.",
                  .optional = true});
  keys.push_back(
      {.path = "probe.values",
       .codec = texts_codec(AT(probe.values)),
       .doc = "Names of values to show, '*' for any part of one: block.*.attn.norm, logits, blocks.[0-3].attn.q.",
       .more = "As in a shell '?' is any character and [0-3] one of these. parameters and gradients stand for all of "
               "them; gradient/NAME is that of one parameter. Values "
               "inside the model are kept for it in planned memory, all layers of them, and are of the step's "
               "last microbatch; gradients are sums over the step's labels, before clipping.",
       .optional = true});
  keys.push_back({.path = "probe.every",
                  .codec = optional_count_codec(AT(probe.every), 1, 1'000'000'000),
                  .doc = "Steps from one showing to the next. Without it, 10.",
                  .optional = true});
  keys.push_back({.path = "probe.save",
                  .codec = texts_codec(AT(probe.save)),
                  .doc = "Names, as in probe.values, whose tensors are kept too: probes/<step>/<name>.npy of the run.",
                  .optional = true});
  keys.push_back({.path = "labels",
                  .codec = without_secret_texts(labels_codec(AT(labels)), "labels"),
                  .doc = "Text of your own that the run carries along, for finding it again.",
                  .optional = true});
  for (const char* later : {"secure", "program"}) {
    keys.push_back(
        {.path = later,
         .codec = reserved_codec(std::string("'") + later + "' is kept for a later version; nothing reads it yet"),
         .doc = "Kept for a later version.",
         .optional = true});
  }
}

}  // namespace systole
