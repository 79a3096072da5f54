// Keys of `train`.
#include "describe/spec/schema.h"

#include <limits>

namespace systole {
namespace {

using Optimizer = OptimizerSpec;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
const Condition kAdamw{"train.optimizer.kind", {"adamw"}};
const Condition kSgd{"train.optimizer.kind", {"sgd"}};
const Condition kExact{"train.exact", {"true"}};
constexpr std::int64_t kMostShards = 4096;
const Condition kDecaying{"train.optimizer.schedule", {"cosine", "linear", "warmup-stable-decay"}};

// `precision: bf16` sets the compute type only, all others are f32; `precision: f64` sets all types.
Result<Node> precision_of(const Node& value) {
  const std::string& type = value.text();
  const std::string rest = type == "f64" ? "f64" : "f32";
  Node map = Node::map();
  for (const char* key : {"parameter", "compute", "accumulate", "reduce"}) {
    map.set(key, Node(NodeKind::string, std::string_view(key) == "compute" ? type : rest, value.place()));
  }
  return map;
}

void add_length_keys(std::vector<Key>& keys) {
  keys.push_back({.path = "train.batch",
                  .codec = count_codec(AT(train.batch), 1, 1'000'000'000),
                  .doc = "Global batch size, in rows a step."});
  keys.push_back(
      {.path = "train.microbatches",
       .codec = count_codec(AT(train.microbatches), 1, 1'000'000),
       .doc = "Gradient accumulation: microbatches of a step's batch, to need less memory; the result is the same.",
       .more = "At most `batch`. When they do not divide it, some have a row more.",
       .default_yaml = "1"});
  const char* group = "end of training";
  keys.push_back({.path = "train.steps",
                  .codec = optional_count_codec(AT(train.steps), 1, 1'000'000'000'000),
                  .doc = "Training ends after so many steps. One of steps, tokens and time is given.",
                  .optional = true,
                  .group = group});
  keys.push_back({.path = "train.tokens",
                  .codec = optional_count_codec(AT(train.tokens), 1, kHuge),
                  .doc = "Training ends with the step that reaches so many tokens, such as 300M.",
                  .more = "Tokens are counted over the rows seen, padding aside.",
                  .optional = true,
                  .group = group});
  keys.push_back({.path = "train.time",
                  .codec = optional_seconds_codec(AT(train.time)),
                  .doc = "Training ends after so much time, such as 100s or 8h.",
                  .more = "Time of training steps, waiting for rows and all; starting up, evaluations and checkpoints "
                          "come on top. A run that goes on counts on from its checkpoint. The number of steps "
                          "depends on the machine, so `exact` refuses it.",
                  .optional = true,
                  .group = group});
}

void add_schedule_keys(std::vector<Key>& keys) {
  using Schedule = Optimizer::Schedule;
  keys.push_back(
      {.path = "train.optimizer.schedule",
       .codec =
           choice_codec<Schedule>(AT(train.optimizer.schedule), {{"cosine", Schedule::cosine},
                                                                 {"linear", Schedule::linear},
                                                                 {"warmup-stable-decay", Schedule::warmup_stable_decay},
                                                                 {"constant", Schedule::constant}}),
       .doc = "How the rate moves after the warmup.",
       .more = "cosine and linear fall from the end of the warmup to the end of the run; warmup-stable-decay "
               "stays and falls linearly at the end, over `decay`.",
       .default_yaml = "constant"});
  keys.push_back({.path = "train.optimizer.warmup",
                  .codec = portion_codec(AT(train.optimizer.warmup)),
                  .doc = "The rate rises linearly from 0 over this part of the run.",
                  .derived = "0 for constant, else 2%",
                  .derive = [](Workload& w) {
                    const bool constant = w.train.optimizer.schedule == Schedule::constant;
                    w.train.optimizer.warmup = Portion{0, constant ? 0.0 : 0.02};
                  }});
  keys.push_back({.path = "train.optimizer.decay",
                  .codec = portion_codec(AT(train.optimizer.decay)),
                  .doc = "The last part of the run, over which the rate falls.",
                  .default_yaml = "20%",
                  .when = {"train.optimizer.schedule", {"warmup-stable-decay"}}});
  keys.push_back({.path = "train.optimizer.final_rate",
                  .codec = fraction_codec(AT(train.optimizer.final_rate)),
                  .doc = "Where the rate ends, as a fraction of `rate`.",
                  .derived = "10% for cosine, else 0",
                  .derive =
                      [](Workload& w) {
                        w.train.optimizer.final_rate = w.train.optimizer.schedule == Schedule::cosine ? 0.1 : 0.0;
                      },
                  .when = kDecaying});
}

void add_optimizer_keys(std::vector<Key>& keys) {
  keys.push_back({.path = "train.optimizer.kind",
                  .codec = choice_codec<Optimizer::Kind>(
                      AT(train.optimizer.kind), {{"adamw", Optimizer::Kind::adamw}, {"sgd", Optimizer::Kind::sgd}}),
                  .doc = "adamw: Adam with decoupled weight decay. sgd: plain, or with momentum.",
                  .default_yaml = "adamw"});
  keys.push_back({.path = "train.optimizer.rate",
                  .codec = number_codec(AT(train.optimizer.rate), 0, 1e6, true),
                  .doc = "Learning rate at the top of the schedule.",
                  .more = "For adamw 1e-4 to 3e-3 is usual; smaller models take higher rates."});
  add_schedule_keys(keys);
  keys.push_back({.path = "train.optimizer.beta1",
                  .codec = number_codec(AT(train.optimizer.beta1), 0, 0.999999),
                  .doc = "Decay rate of the first moment, the mean of gradients.",
                  .default_yaml = "0.9",
                  .when = kAdamw});
  keys.push_back({.path = "train.optimizer.beta2",
                  .codec = number_codec(AT(train.optimizer.beta2), 0, 0.9999999),
                  .doc = "Decay rate of the second moment, the mean of their squares.",
                  .default_yaml = "0.95",
                  .when = kAdamw});
  keys.push_back({.path = "train.optimizer.eps",
                  .codec = number_codec(AT(train.optimizer.eps), 0, 1, true),
                  .doc = "Added to the root of the second moment.",
                  .default_yaml = "1e-8",
                  .when = kAdamw});
  keys.push_back({.path = "train.optimizer.momentum",
                  .codec = number_codec(AT(train.optimizer.momentum), 0, 0.999999),
                  .doc = "Part of the last update that is kept; 0: none, and no state.",
                  .default_yaml = "0",
                  .when = kSgd});
  keys.push_back({.path = "train.optimizer.weight_decay",
                  .codec = number_codec(AT(train.optimizer.weight_decay), 0, 1e6),
                  .doc = "Weight decay of matrices; biases and the scales of norms have none.",
                  .derived = "0.1 for adamw, 0 for sgd",
                  .derive = [](Workload& w) {
                    w.train.optimizer.weight_decay = w.train.optimizer.kind == Optimizer::Kind::adamw ? 0.1 : 0.0;
                  }});
  keys.push_back({.path = "train.optimizer.clip",
                  .codec = number_codec(AT(train.optimizer.clip), 0, kInfinity),
                  .doc = "Gradient clipping: a larger global norm of the gradients is scaled down to this; 0: never.",
                  .derived = "1 for adamw, 0 for sgd",
                  .derive = [](Workload& w) {
                    w.train.optimizer.clip = w.train.optimizer.kind == Optimizer::Kind::adamw ? 1.0 : 0.0;
                  }});
}

void add_precision_keys(std::vector<Key>& keys) {
  keys.push_back({.path = "train.precision.parameter",
                  .codec = master_dtype_codec(AT(train.precision.parameter)),
                  .doc = "Parameters as they are kept and updated, and the optimizer's state: the master copy.",
                  .more = "Below f32 small updates would be lost, so no such type is taken; each use casts to "
                          "`compute`. f64 runs with `--backend reference`.",
                  .default_yaml = "f32"});
  keys.push_back({.path = "train.precision.compute",
                  .codec = dtype_codec(AT(train.precision.compute)),
                  .doc = "Operands of contractions, and activations between operations.",
                  .more = "The cpu backend computes in bf16 and f32, `--backend reference` in every type.",
                  .default_yaml = "f32"});
  keys.push_back({.path = "train.precision.accumulate",
                  .codec = master_dtype_codec(AT(train.precision.accumulate)),
                  .doc = "Sums within a contraction.",
                  .more = "Long sums below f32 would be wrong, so no such type is taken. f64 runs with "
                          "`--backend reference`.",
                  .default_yaml = "f32"});
  keys.push_back({.path = "train.precision.reduce",
                  .codec = dtype_codec(AT(train.precision.reduce)),
                  .doc = "Gradients as they are summed over microbatches and sent between devices. bf16 halves what is "
                         "sent; each sum is rounded to it.",
                  .default_yaml = "f32"});
}

void add_course_keys(std::vector<Key>& keys) {
  using OnDivergence = TrainSpec::OnDivergence;
  keys.push_back({.path = "train.recompute",
                  .codec = recompute_codec(AT(train.recompute)),
                  .doc = "Activation checkpointing: what the backward pass recomputes instead of keeping it in memory.",
                  .more =
                      "attention: the attention part. block: all within a block. A list names the values to keep, as "
                      "`systole show graph` prints them; all others are computed again. The result is the same.",
                  .default_yaml = "none"});
  keys.push_back({.path = "train.seed",
                  .codec = count_codec(AT(train.seed), 0, kHuge),
                  .doc = "Of initial weights and dropout.",
                  .default_yaml = "0"});
  keys.push_back(
      {.path = "train.exact",
       .codec = bool_codec(AT(train.exact)),
       .doc = "After any kills, on any number of workers, the weights, moments and losses are the same to the bit, on "
              "one kind of machine.",
       .more = "Workers are the devices of a mesh with axes data and fsdp, logical_shards at most. The numbers differ "
               "from those of a run that is not exact, by rounding; docs/concepts/exact.md tells what it costs.",
       .default_yaml = "false"});
  keys.push_back({.path = "train.logical_shards",
                  .codec = count_codec(AT(train.logical_shards), 1, kMostShards),
                  .doc = "Equal parts of the batch that are summed in one order whoever owns them; a power of two.",
                  .more = "So many workers at most. Each shard is a microbatch, or several where train.microbatches is "
                          "a multiple of it. Another number of shards is another order of sums, and other bits.",
                  .default_yaml = "8",
                  .when = kExact});
  keys.push_back({.path = "train.evaluate.every",
                  .codec = interval_codec(AT(train.evaluate)),
                  .doc = "From one evaluation on held-out data to the next; one at the end comes anyway.",
                  .default_yaml = "never"});
  keys.push_back({.path = "train.evaluate.batches",
                  .codec = count_codec(AT(train.evaluate_batches), 0, 1'000'000'000),
                  .doc = "Batches of held-out data an evaluation during training takes; 0: all. The last takes all.",
                  .default_yaml = "0"});
  keys.push_back({.path = "train.divergence.policy",
                  .codec = choice_codec<OnDivergence>(AT(train.on_divergence),
                                                      {{"stop", OnDivergence::stop}, {"ignore", OnDivergence::ignore}}),
                  .doc = "stop: end the run, name the step and say what to try. ignore: go on.",
                  .more = "A step whose gradient is not finite leaves the weights as they were under either.",
                  .default_yaml = "stop"});
  keys.push_back({.path = "train.divergence.skips",
                  .codec = count_codec(AT(train.divergence_skips), 1, 1'000'000),
                  .doc = "Steps in a row with a gradient that is not finite that count as divergence.",
                  .default_yaml = "10"});
  keys.push_back({.path = "train.divergence.factor",
                  .codec = number_codec(AT(train.divergence_factor), 0, kInfinity),
                  .doc = "A loss that stays above so many times its lowest level (a mean over 32 steps), and above a "
                         "third of the first, counts as divergence, the sooner the farther above; 0: never.",
                  .default_yaml = "3"});
}

}  // namespace

void add_train_keys(Schema& schema) {
  schema.sections.push_back({"train", "How it is trained.", {}, {}});
  schema.sections.push_back({"train.optimizer", "How a gradient becomes an update.", {}, {}});
  schema.sections.push_back({"train.precision", "Element types.", precision_of,
                             "a type alone, such as bf16, is the type of computing; the others stay f32 (f64: all)"});
  schema.sections.push_back({"train.evaluate", "Measuring on held-out data.", {}, {}});
  schema.sections.push_back({"train.divergence", "What happens when the loss runs away.", {}, {}});
  add_length_keys(schema.keys);
  add_optimizer_keys(schema.keys);
  add_precision_keys(schema.keys);
  add_course_keys(schema.keys);
}

}  // namespace systole
