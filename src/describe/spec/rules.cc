// Rules over several keys: which values exclude each other, why, and what to change. A field that could not be read
// holds 0 or its default, and no rule reports a 0.
#include <algorithm>

#include "describe/spec/families/families.h"
#include "describe/spec/rules_layout.h"
#include "describe/spec/schema.h"
#include "ground/base/counted.h"
#include "ground/tensor/int4.h"

namespace systole {
namespace {

using Rules = std::vector<BrokenRule>;

const std::string& family_of_preset(const ModelSpec& m) {
  for (const PresetValue& value : *preset_values(m.preset)) {
    if (value.path == "model.family") return value.yaml;
  }
  CHECK(false, "preset {} has no family", m.preset);
}

void check_masking(const Workload& w, Rules& broken) {
  const DataSpec& d = w.data;
  if (w.model.task() != Task::masked) return;
  if (d.masked_share <= 0) {
    broken.push_back({{"data.masking.share"}, ErrorKind::invalid, "no token would be predicted", "such as 15%"});
  }
  if (d.masked_hidden + d.masked_random > 1) {
    broken.push_back({{"data.masking.random", "data.masking.hidden"},
                      ErrorKind::invalid,
                      "hidden and random tokens are more than all that are to be predicted",
                      "such as hidden: 80%, random: 10%"});
  }
}

void check_model(const Workload& w, Rules& broken) {
  const ModelSpec& m = w.model;
  if (m.dropout() >= 1) {
    broken.push_back({{"model.dropout"}, ErrorKind::invalid, "dropout 1 leaves nothing", "below 1"});
  }
  if (!m.preset.empty() && family_of_preset(m) != m.family_name()) {
    broken.push_back({{"model.preset"},
                      ErrorKind::invalid,
                      fmt::format("preset {} is of family {}", m.preset, family_of_preset(m)),
                      "take model.family out"});
  }
  if (const ModelFamily& family = family_of(m); family.rules != nullptr) family.rules(m, broken);
}

void check_packing(const Workload& w, Rules& broken) {
  if (w.model.task() == Task::pairs && w.data.packing) {
    broken.push_back(
        {{"data.packing"}, ErrorKind::unsupported, "pairs are not packed yet: one a row", "take data.packing out"});
  }
}

// The kind of labels, tokens or numbers, determines the loss.
void check_loss(const Workload& w, Rules& broken) {
  const Loss loss = IN_FAMILY(loss).get_or(w.model.family, Loss::squared_error);
  if (w.data.kind == DataSpec::Kind::text && loss != Loss::cross_entropy)
    broken.push_back({{"model.loss"},
                      ErrorKind::invalid,
                      "text is predicted token by token, and squared_error is of numbers",
                      "model.loss: cross_entropy"});
  if (w.data.kind == DataSpec::Kind::linear && loss != Loss::squared_error)
    broken.push_back({{"model.loss"},
                      ErrorKind::invalid,
                      "data of kind linear is labelled with numbers, and cross_entropy is of classes",
                      "model.loss: squared_error"});
}

void check_pairing(const Workload& w, Rules& broken) {
  const DataSpec::Kind needed = data_of(w.model.task());
  if (w.data.kind == needed) return check_loss(w, broken);
  broken.push_back({{"data.kind", "model.family"},
                    ErrorKind::invalid,
                    fmt::format("a {} is not trained on data of kind {}", w.model.family_name(), name_of(w.data.kind)),
                    fmt::format("data.kind: {}", name_of(needed))});
}

void check_tokenizer(const Workload& w, Rules& broken) {
  const TokenizerSpec& t = w.data.tokenizer;
  if (w.data.kind != DataSpec::Kind::text) return;
  if (t.kind == TokenizerSpec::Kind::byte_level_bpe && t.file.empty()) {
    broken.push_back({{"data.tokenizer.file", "data.tokenizer.kind"},
                      ErrorKind::unsupported,
                      "a byte-level BPE is not trained here: it comes out of a file",
                      "data.tokenizer.file: tokenizer.json, or data.tokenizer.kind: sentencepiece"});
    return;
  }
  if (t.vocabulary == 0 && t.file.empty()) {
    broken.push_back(
        {{"data.tokenizer.vocabulary", "data.tokenizer.file"},
         ErrorKind::invalid,
         "the tokenizer's size is missing",
         fmt::format("data.tokenizer.vocabulary: {}, or data.tokenizer.file with a trained one",
                     w.model.vocabulary() == 0 ? 8192 : std::min<std::int64_t>(8192, w.model.vocabulary()))});
  }
  if (t.vocabulary != 0 && !t.file.empty()) {
    broken.push_back({{"data.tokenizer.vocabulary"},
                      ErrorKind::invalid,
                      "data.tokenizer.vocabulary and data.tokenizer.file exclude each other: the file has its size",
                      "take one of them out"});
  }
  if (!t.file.empty() && w.model.vocabulary() == 0) {
    broken.push_back({{"model.vocabulary"},
                      ErrorKind::invalid,
                      "model.vocabulary is missing: the tokenizer is a file",
                      "model.vocabulary: the tokenizer's size or more"});
  }
  if (w.model.vocabulary() != 0 && w.model.vocabulary() < t.vocabulary) {
    broken.push_back(
        {{"model.vocabulary", "data.tokenizer.vocabulary"},
         ErrorKind::invalid,
         fmt::format("vocabulary {} is smaller than the tokenizer's {}", w.model.vocabulary(), t.vocabulary),
         fmt::format("model.vocabulary: {} or more, or leave it out", t.vocabulary)});
  }
}

void check_held_out(const Workload& w, Rules& broken) {
  const bool text = w.data.kind == DataSpec::Kind::text;
  if (text && !w.data.held_out.files.empty() && w.data.held_out_fraction > 0) {
    broken.push_back({{"data.held_out.fraction"},
                      ErrorKind::invalid,
                      "data.held_out.files and data.held_out.fraction exclude each other",
                      "take one of them out"});
  }
  if (text && w.data.held_out_fraction >= 1) {
    broken.push_back({{"data.held_out.fraction"}, ErrorKind::invalid, "nothing is left to train on", "such as 5%"});
  }
  const bool none = !w.data.has_held_out();
  if (none && !w.train.evaluate.never()) {
    broken.push_back({{"train.evaluate.every"},
                      ErrorKind::invalid,
                      "there is no held-out data to evaluate on",
                      text ? "data.held_out.fraction: 5%" : "data.held_out_rows: 1000"});
  }
  if (w.checkpoint.best && (none || w.train.evaluate.never())) {
    broken.push_back({{"checkpoint.best"},
                      ErrorKind::invalid,
                      "the best is known from evaluations, and there are none",
                      "train.evaluate.every: 5min"});
  }
}

void check_end(const Workload& w, Rules& broken) {
  const TrainSpec& t = w.train;
  std::vector<std::string> given;
  if (t.steps) given.push_back("train.steps");
  if (t.tokens) given.push_back("train.tokens");
  if (t.time) given.push_back("train.time");
  if (given.empty()) {
    broken.push_back({{"train.steps", "train.tokens", "train.time"},
                      ErrorKind::invalid,
                      "nothing says when training ends",
                      "one of steps, tokens or time under train"});
  } else if (given.size() > 1) {
    broken.push_back({{given.back()},
                      ErrorKind::invalid,
                      fmt::format("{} exclude each other", fmt::join(given, " and ")),
                      "keep one of them"});
  }
  if (t.exact && t.time) {
    broken.push_back({{"train.exact"},
                      ErrorKind::invalid,
                      "how many steps train.time allows depends on the machine's mood",
                      "train.steps or train.tokens in place of train.time"});
  }
  if (t.tokens && w.data.kind != DataSpec::Kind::text) {
    broken.push_back({{"train.tokens"},
                      ErrorKind::invalid,
                      fmt::format("data of kind {} has no tokens", name_of(w.data.kind)),
                      "train.steps"});
  }
}

void check_training(const Workload& w, Rules& broken) {
  const TrainSpec& t = w.train;
  if (t.batch != 0 && t.microbatches > t.batch) {
    broken.push_back(
        {{"train.microbatches", "train.batch"},
         ErrorKind::invalid,
         fmt::format("{} of {}: some would be empty", counted(t.microbatches, "microbatch"), counted(t.batch, "row")),
         fmt::format("train.microbatches: {} at most", most_microbatches(t))});
  }
  const OptimizerSpec& o = t.optimizer;
  const bool decays = o.schedule == OptimizerSpec::Schedule::warmup_stable_decay;
  const double fraction = o.warmup.fraction + (decays ? o.decay.fraction : 0);
  const std::int64_t steps = o.warmup.steps + (decays ? o.decay.steps : 0);
  const double whole = t.steps ? static_cast<double>(*t.steps) : 0;
  if (fraction > 1 || (t.steps && static_cast<double>(steps) + fraction * whole > whole)) {
    broken.push_back(
        {{decays ? "train.optimizer.decay" : "train.optimizer.warmup"},
         ErrorKind::invalid,
         decays ? "warmup and decay together are longer than the run" : "the warmup is longer than the run",
         "such as warmup: 2%, decay: 20%"});
  }
}

// A variable is either in `env` or in `secrets`.
void check_environment(const Workload& w, Rules& broken) {
  for (const auto& [name, reference] : w.secrets)
    if (w.env.contains(name))
      broken.push_back(
          {{"env"}, ErrorKind::invalid, fmt::format("{} is in env and in secrets", name), "take one of them out"});
}

// `workload: machines` creates machines and runs nothing.
void check_machines(const Workload& w, Rules& broken) {
  if (w.kind != Workload::Kind::machines) return;
  if (!w.command.empty())
    broken.push_back({{"command"},
                      ErrorKind::invalid,
                      "a command, and workload: machines, of which nothing runs",
                      "take out workload: machines"});
  if (w.gcloud.create == GcloudSpec::Create::nothing)
    broken.push_back({{"workload"},
                      ErrorKind::invalid,
                      "machines, and nothing says which",
                      "gcloud: { create: instances, "
                      "name: NAME }"});
}

// `workload: serve`: a model that generates, and one kind of traffic.
void check_serving(const Workload& w, Rules& broken) {
  check_model(w, broken);
  const ModelSpec& m = w.model;
  if (m.task() != Task::language && m.task() != Task::pairs) {
    broken.push_back({{"model.family"},
                      ErrorKind::invalid,
                      fmt::format("a {} generates no text that could be served", m.family_name()),
                      "model.family: gpt, llama or t5"});
    return;
  }
  if (m.vocabulary() == 0)
    broken.push_back({{"model.vocabulary"},
                      ErrorKind::invalid,
                      "model.vocabulary is missing, and no tokenizer says it",
                      "model.vocabulary: 32000, or model.preset or model.weights"});
  if (w.serve.context && m.context() > 0 && *w.serve.context > m.context())
    broken.push_back({{"serve.context"},
                      ErrorKind::invalid,
                      fmt::format("serve.context: a sequence of {} for a model of context {}",
                                  counted(*w.serve.context, "token"), m.context()),
                      fmt::format("serve.context: {} at most", m.context())});
  if (w.serve.compute == DType::bf16) {
    const auto refuse = [&](const std::string& why, const char* hint) {
      broken.push_back({{"serve.compute"}, ErrorKind::invalid, fmt::format("bf16, and {}", why), hint});
    };
    if (m.task() != Task::language)
      refuse("the model does not go on from its prompt: it is served in f32", "serve.compute: f32");
    else if (w.serve.cache != DType::bf16)
      refuse("keys and values are kept in f32", "serve.cache: bf16");
    if (is_packed_type(w.serve.parameter))
      refuse(fmt::format("products with weights in {} have rows in int8", packed_name(w.serve.parameter)),
             "serve.compute: f32, or serve.parameter: bf16");
  }
  for (const auto& [axis, size] : w.mesh) {
    if (axis == "model" || size == 1) continue;
    broken.push_back({{"mesh"},
                      ErrorKind::invalid,
                      fmt::format("a server cuts its model along the axis 'model' alone, not along '{}'", axis),
                      "mesh: { model: 2 }"});
  }
  const TrafficSpec& t = w.serve.traffic;
  const int given = (t.rate ? 1 : 0) + (t.users ? 1 : 0) + (t.trace.empty() ? 0 : 1);
  if (given == 0)
    broken.push_back({{"serve.traffic.rate", "serve.traffic.users", "serve.traffic.trace"},
                      ErrorKind::invalid,
                      "nothing says how many requests come",
                      "one of rate, users and trace under serve.traffic, as rate: 2"});
  if (given > 1)
    broken.push_back({{t.trace.empty() ? "serve.traffic.users" : "serve.traffic.trace"},
                      ErrorKind::invalid,
                      "rate, users and trace exclude each other",
                      "keep one of them"});
}

}  // namespace

std::vector<BrokenRule> broken_rules(const Workload& workload) {
  Rules broken;
  check_environment(workload, broken);
  check_machines(workload, broken);
  if (workload.kind == Workload::Kind::serve) check_serving(workload, broken);
  if (!workload.has_model()) return broken;
  check_model(workload, broken);
  check_packing(workload, broken);
  check_pairing(workload, broken);
  check_masking(workload, broken);
  check_tokenizer(workload, broken);
  check_held_out(workload, broken);
  check_mixture(workload, broken);
  check_buckets(workload, broken);
  check_end(workload, broken);
  check_training(workload, broken);
  for (BrokenRule& rule : broken_layout_rules(workload)) broken.push_back(std::move(rule));
  return broken;
}

}  // namespace systole
