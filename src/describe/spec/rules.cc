// What no single key can tell: which values do not go together, why, and what would. A field whose own reading failed
// holds 0 or its default, and no rule speaks of a 0.
#include <algorithm>
#include <cmath>

#include "describe/spec/rules_layout.h"
#include "describe/spec/schema.h"
#include "ground/base/counted.h"

namespace systole {
namespace {

using Rules = std::vector<Broken>;

bool divides(std::int64_t a, std::int64_t b) { return a == 0 || b == 0 || b % a == 0; }

void check_heads(const ModelSpec& m, Rules& broken) {
  if (m.head == 0 && !divides(m.heads, m.width)) {
    broken.push_back({{"model.heads", "model.width"},
                      ErrorKind::invalid,
                      fmt::format("{} heads do not divide width {}", m.heads, m.width),
                      "heads may be " + divisors_of(m.width) + ", or say model.head"});
  }
  if (!divides(m.kv_heads, m.heads)) {
    broken.push_back({{"model.kv_heads", "model.heads"},
                      ErrorKind::invalid,
                      fmt::format("{} kv_heads do not divide {} heads", m.kv_heads, m.heads),
                      "kv_heads may be " + divisors_of(m.heads)});
  }
  if (m.position == ModelSpec::Position::rotary && m.head % 2 != 0) {
    broken.push_back({{"model.position", "model.head", "model.heads", "model.width"},
                      ErrorKind::invalid,
                      fmt::format("rotary turns pairs of numbers, and a head has {} of them", m.head),
                      "choose width and heads so that width / heads is even, or an even model.head"});
  }
  const ModelSpec::RopeScaling& r = m.rope_scaling;
  if (r.kind == ModelSpec::RopeScaling::Kind::llama3 && r.low_freq_factor >= r.high_freq_factor) {
    broken.push_back({{"model.rope_scaling.high_freq_factor", "model.rope_scaling.low_freq_factor"},
                      ErrorKind::invalid,
                      fmt::format("high_freq_factor {} is not above low_freq_factor {}: nothing lies between fast and "
                                  "slow frequencies",
                                  r.high_freq_factor, r.low_freq_factor),
                      "Llama 3 has low_freq_factor: 1 and high_freq_factor: 4"});
  }
}

void check_mlp(const ModelSpec& m, Rules& broken) {
  if (m.mlp_ratio == 0) return;
  const double hidden = static_cast<double>(m.width) * m.mlp_ratio;
  if (hidden != std::floor(hidden)) {
    broken.push_back(
        {{"model.mlp_ratio", "model.width"},
         ErrorKind::invalid,
         fmt::format("width {} × mlp_ratio {} is {}, no whole number", m.width, m.mlp_ratio, hidden),
         fmt::format("mlp_ratio: {}, or model.mlp in its place", std::round(hidden) / static_cast<double>(m.width))});
  } else if (static_cast<double>(m.mlp) != hidden) {
    broken.push_back({{"model.mlp_ratio", "model.mlp"},
                      ErrorKind::invalid,
                      fmt::format("model.mlp is {}, and width × mlp_ratio is {}", m.mlp, hidden),
                      "take one of them out"});
  }
}

void check_experts(const ModelSpec& m, Rules& broken) {
  const ModelSpec::Experts& moe = m.moe;
  const auto say = [&](const char* key, const std::string& message, std::string hint) {
    broken.push_back({{key, "model.moe.experts"}, ErrorKind::invalid, message, std::move(hint)});
  };
  if (moe.experts == 0) return;
  if (moe.top_k > moe.experts)
    say("model.moe.top_k", fmt::format("a token cannot go to {} of {} experts", moe.top_k, moe.experts), "at most all");
  if (!divides(moe.group, m.context))
    say("model.moe.group", fmt::format("groups of {} tokens do not divide rows of {}", moe.group, m.context),
        "group may be " + divisors_of(m.context) + ", or leave it out: a group is a row");
  if (m.bias) say("model.bias", "experts have no biases here", "model.bias: false");
  if (moe.dense_layers > 0 && moe.dense_layers >= m.layers)
    say("model.moe.dense_layers", fmt::format("{} of {} layers: none has experts", moe.dense_layers, m.layers),
        "fewer, or no experts");
  const std::int64_t others = m.layers - moe.dense_layers;
  if (others > 0 && others % moe.every != 0)
    say("model.moe.every", fmt::format("{} layers are no multiple of {}", others, moe.every),
        "every may be " + divisors_of(others));
  if ((moe.dense_layers > 0 || moe.every > 1) != (moe.dense_mlp > 0))
    say("model.moe.dense_mlp",
        moe.dense_mlp == 0 ? "the width of layers without experts is missing" : "no layer is without experts",
        moe.dense_mlp == 0 ? "model.moe.dense_mlp" : "model.moe.dense_layers: 1, or take it out");
}

void check_latent(const ModelSpec& m, Rules& broken) {
  const ModelSpec::Latent& mla = m.mla;
  const auto say = [&](const char* key, const std::string& message, std::string hint, ErrorKind kind) {
    broken.push_back({{key, "model.mla.kv_rank"}, kind, message, std::move(hint)});
  };
  constexpr ErrorKind kInvalid = ErrorKind::invalid, kNotYet = ErrorKind::unsupported;
  if (mla.kv_rank == 0) return;
  if (mla.rope % 2 != 0)
    say("model.mla.rope", fmt::format("rotary turns pairs of numbers, and there are {}", mla.rope), "64, as published",
        kInvalid);
  if (mla.value > mla.nope + mla.rope)
    say("model.mla.value", fmt::format("values of {} are wider than keys of {}", mla.value, mla.nope + mla.rope),
        "at most nope + rope", kNotYet);
  if (m.position != ModelSpec::Position::rotary)
    say("model.position", "latent attention has rotary positions", "model.position: rotary", kInvalid);
  if (m.kv_heads != m.heads)
    say("model.kv_heads", "latent attention has a key for each head", "take model.kv_heads out", kInvalid);
  if (m.bias) say("model.bias", "latent attention has no biases", "model.bias: false", kInvalid);
  if (m.qk_norm) say("model.qk_norm", "latent attention has norms of its own", "model.qk_norm: false", kInvalid);
  if (m.adapter_rank > 0)
    say("model.adapters.rank", "latent attention has no adapters yet", "model.adapters.rank: 0", kNotYet);
}

void check_sizes(const ModelSpec& m, Rules& broken) {
  if (m.adapter_rank > m.width && m.width > 0) {
    broken.push_back({{"model.adapters.rank"},
                      ErrorKind::invalid,
                      fmt::format("rank {} is above width {}", m.adapter_rank, m.width),
                      "8 to 64 is usual"});
  }
  const double width = static_cast<double>(m.width),
               attended = static_cast<double>(m.heads) * static_cast<double>(m.head);
  const double fed =
      static_cast<double>(m.mlp) * static_cast<double>(std::max<std::int64_t>(1, m.moe.experts + m.moe.shared_experts));
  const double parameters = static_cast<double>(m.layers) * width * (4 * attended + 3 * fed) +
                            static_cast<double>(m.vocabulary + m.context) * width;
  if (parameters > 1e17) {
    broken.push_back({{"model.width"},
                      ErrorKind::invalid,
                      fmt::format("a model of {:.1e} parameters cannot be counted", parameters),
                      "fewer layers, or less width"});
  }
}

const std::string& family_of_preset(const ModelSpec& m) {
  for (const PresetValue& value : *preset_values(m.preset)) {
    if (value.path == "model.family") return value.yaml;
  }
  CHECK(false, "preset {} has no family", m.preset);
}

std::string name_of(ModelSpec::Family family) {
  for (const FamilyDefaults& defaults : family_defaults()) {
    if (defaults.family == family) return defaults.name;
  }
  CHECK(false, "family {} has no defaults", static_cast<int>(family));
}

void check_t5(const ModelSpec& m, Rules& broken) {
  if (m.relative_buckets % 4 != 0) {
    broken.push_back({{"model.relative.buckets"},
                      ErrorKind::invalid,
                      fmt::format("{} is no multiple of 4", m.relative_buckets),
                      "32, as published"});
  }
  if (m.relative_furthest <= m.relative_buckets / 2) {
    broken.push_back(
        {{"model.relative.furthest", "model.relative.buckets"},
         ErrorKind::invalid,
         fmt::format("{} buckets tell distances up to {} apart one by one", m.relative_buckets, m.relative_buckets / 2),
         fmt::format("furthest: {} or more", m.relative_buckets)});
  }
}

void check_masking(const Workload& w, Rules& broken) {
  const DataSpec& d = w.data;
  if (w.model.family != ModelSpec::Family::bert) return;
  if (d.masked_share <= 0) {
    broken.push_back({{"data.masking.share"}, ErrorKind::invalid, "no token would be told", "such as 15%"});
  }
  if (d.masked_hidden + d.masked_random > 1) {
    broken.push_back({{"data.masking.random", "data.masking.hidden"},
                      ErrorKind::invalid,
                      "hidden and random tokens are more than all that are to be told",
                      "such as hidden: 80%, random: 10%"});
  }
}

void check_model(const Workload& w, Rules& broken) {
  const ModelSpec& m = w.model;
  if (m.dropout >= 1) {
    broken.push_back({{"model.dropout"}, ErrorKind::invalid, "dropout 1 leaves nothing", "below 1"});
  }
  if (!m.preset.empty() && family_of_preset(m) != name_of(m.family)) {
    broken.push_back({{"model.preset"},
                      ErrorKind::invalid,
                      fmt::format("preset {} is of family {}", m.preset, family_of_preset(m)),
                      "take model.family out"});
  }
  if (m.family != ModelSpec::Family::mlp) {
    check_heads(m, broken);
    check_mlp(m, broken);
    check_experts(m, broken);
    check_latent(m, broken);
    check_sizes(m, broken);
  }
  if (m.family == ModelSpec::Family::t5) {
    check_t5(m, broken);
    if (w.data.packing) {
      broken.push_back(
          {{"data.packing"}, ErrorKind::unsupported, "pairs are not packed yet: one a row", "take data.packing out"});
    }
  }
}

void check_pairing(const Workload& w, Rules& broken) {
  const bool language = w.model.family != ModelSpec::Family::mlp, text = w.data.kind == DataSpec::Kind::text;
  if (language != text) {
    broken.push_back(
        {{"data.kind", "model.family"},
         ErrorKind::invalid,
         fmt::format("a {} is not trained on data of kind {}", name_of(w.model.family), text ? "text" : "linear"),
         language ? "data.kind: text" : "data.kind: linear"});
  }
  const bool cross_entropy = w.model.loss == ModelSpec::Loss::cross_entropy;
  if (cross_entropy != text && language == text) {
    broken.push_back({{"model.loss"},
                      ErrorKind::invalid,
                      text ? "text is predicted token by token, and squared_error is of numbers"
                           : "data of kind linear is labelled with numbers, and cross_entropy is of classes",
                      text ? "model.loss: cross_entropy" : "model.loss: squared_error"});
  }
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
    broken.push_back({{"data.tokenizer.vocabulary", "data.tokenizer.file"},
                      ErrorKind::invalid,
                      "the tokenizer's size is missing",
                      fmt::format("data.tokenizer.vocabulary: {}, or data.tokenizer.file with a trained one",
                                  w.model.vocabulary == 0 ? 8192 : std::min<std::int64_t>(8192, w.model.vocabulary))});
  }
  if (t.vocabulary != 0 && !t.file.empty()) {
    broken.push_back({{"data.tokenizer.vocabulary"},
                      ErrorKind::invalid,
                      "data.tokenizer.vocabulary and data.tokenizer.file exclude each other: the file has its size",
                      "take one of them out"});
  }
  if (!t.file.empty() && w.model.vocabulary == 0) {
    broken.push_back({{"model.vocabulary"},
                      ErrorKind::invalid,
                      "model.vocabulary is missing: the tokenizer is a file",
                      "model.vocabulary: the tokenizer's size or more"});
  }
  if (w.model.vocabulary != 0 && w.model.vocabulary < t.vocabulary) {
    broken.push_back({{"model.vocabulary", "data.tokenizer.vocabulary"},
                      ErrorKind::invalid,
                      fmt::format("vocabulary {} is smaller than the tokenizer's {}", w.model.vocabulary, t.vocabulary),
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
  const bool none = text ? w.data.held_out.files.empty() && w.data.held_out_fraction == 0 : w.data.held_out_rows == 0;
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
    broken.push_back({{"train.tokens"}, ErrorKind::invalid, "data of kind linear has no tokens", "train.steps"});
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

// What names a variable names no value of it.
void check_environment(const Workload& w, Rules& broken) {
  for (const auto& [name, reference] : w.secrets)
    if (w.env.contains(name))
      broken.push_back(
          {{"env"}, ErrorKind::invalid, fmt::format("{} is in env and in secrets", name), "take one of them out"});
}

// Machines alone are those that a command makes, and run nothing.
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

}  // namespace

std::vector<Broken> broken_rules(const Workload& workload) {
  Rules broken;
  check_environment(workload, broken);
  check_machines(workload, broken);
  if (!workload.has_model()) return broken;
  check_model(workload, broken);
  check_pairing(workload, broken);
  check_masking(workload, broken);
  check_tokenizer(workload, broken);
  check_held_out(workload, broken);
  check_end(workload, broken);
  check_training(workload, broken);
  for (Broken& rule : broken_layout_rules(workload)) broken.push_back(std::move(rule));
  return broken;
}

}  // namespace systole
