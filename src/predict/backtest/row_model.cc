#include "predict/backtest/row_model.h"

#include <fmt/ranges.h>

#include <cmath>

#include "predict/backtest/row_words.h"

namespace systole::backtest {
namespace {

// Words in a column for which a row is refused.
struct Unbuilt {
  std::string PublishedRow::*column;
  std::string_view words, reason;
};
constexpr Unbuilt kUnbuilt[] = {
    {&PublishedRow::framework, "HugeCTR", "recommender model"},
    {&PublishedRow::framework, "TorchRec", "recommender model"},
    {&PublishedRow::model, "diffusion", "diffusion model"},
    {&PublishedRow::notes, "hybrid Mamba", "hybrid Mamba"},
    {&PublishedRow::model, "mamba", "hybrid Mamba"},
    {&PublishedRow::model, "nemotron-h", "hybrid Mamba"},
    {&PublishedRow::model, "nemotron_3", "hybrid Mamba"},
    {&PublishedRow::model, "t5", "encoder-decoder whose decoder's rows are not told"},
    {&PublishedRow::attention_variant, "global head_dim", "heads of two widths"},
};

// A family by its feed-forward part: GPT's, Llama's, Nemotron's, and the two-matrix models of MaxText.
struct FeedForward {
  std::string_view words;
  DecoderSpec::Family family;
  Activation activation;
  bool gated, bias;
  Norm norm;
  Position position;
};
constexpr FeedForward kFeedForwards[] = {
    {"swiglu", DecoderSpec::Family::llama, Activation::silu, true, false, Norm::rms, Position::rotary},
    {"geglu", DecoderSpec::Family::llama, Activation::gelu_tanh, true, false, Norm::rms, Position::rotary},
    {"gelu", DecoderSpec::Family::gpt, Activation::gelu_tanh, false, true, Norm::layer, Position::learned},
    {"squared-relu", DecoderSpec::Family::gpt, Activation::relu2, false, false, Norm::layer, Position::rotary},
    {"relu", DecoderSpec::Family::gpt, Activation::relu, false, false, Norm::rms, Position::rotary},
};

Error refused(std::string reason) { return error(ErrorKind::unsupported, "{}", reason); }

Status need_dimensions(const PublishedRow& row) {
  std::vector<std::string_view> missing;
  const std::pair<std::string_view, bool> told[] = {{"n_layers", row.layers.has_value()},
                                                    {"d_model", row.width.has_value()},
                                                    {"d_ff", row.mlp.has_value()},
                                                    {"seq_len", row.sequence_length.has_value()},
                                                    {"mlp_type", !row.mlp_type.empty()}};
  for (const auto& [name, is] : told)
    if (!is) missing.push_back(name);
  if (missing.empty()) return {};
  return refused(fmt::format("dimensions not told: {}", fmt::join(missing, ", ")));
}

// Windows of a published model may differ by layer; ours have one window. It is chosen for the same number of scores: a
// query with a window of w in rows of s sees w - w^2 / 2s keys on average. `share`: fraction of layers with a window.
std::int64_t even_window(double window, double share, double sequence_length, bool chunked) {
  window = std::min(window, sequence_length);
  const double within = chunked ? window / 2 : window - window * window / (2 * sequence_length);
  const double mean = share * within + (1 - share) * sequence_length / 2;
  return std::llround(sequence_length -
                      std::sqrt(std::max(0.0, sequence_length * sequence_length - 2 * sequence_length * mean)));
}

struct WindowPattern {
  std::string_view words;
  double share;  // of layers
  bool chunked;  // the window is the query's own chunk
};
constexpr WindowPattern kWindows[] = {{"alternating sliding window", 0.5, false},
                                      {"local:global sliding window", 5.0 / 6, false},
                                      {"chunked attention window", 0.75, true},
                                      {"sliding window", 1, false}};

std::int64_t window_of(const PublishedRow& row, std::vector<std::string>& taken) {
  for (const WindowPattern& pattern : kWindows) {
    const std::optional<double> window = number_after(row.attention_variant, pattern.words);
    if (!window) continue;
    if (*window >= static_cast<double>(*row.sequence_length)) return 0;
    if (pattern.share < 1) taken.push_back("one window in all layers, with as many scores as the windows of some have");
    return even_window(*window, pattern.share, static_cast<double>(*row.sequence_length), pattern.chunked);
  }
  return 0;
}

Status set_experts(const PublishedRow& row, DecoderSpec& spec, std::vector<std::string>& taken) {
  if (row.experts.value_or(0) <= 1) return {};
  if (!row.top_k) return refused("experts: top_k not told");
  spec.moe.experts = *row.experts;
  spec.moe.top_k = *row.top_k;
  spec.mlp = row.expert_mlp.value_or(*row.mlp);
  const std::string& variant = row.attention_variant;
  spec.moe.shared_experts = says(variant, "2 shared") ? 2 : says(variant, "shared expert") ? 1 : 0;
  spec.moe.capacity_factor = number_after(variant, "capacity factor").value_or(1);
  if (!says(variant, "capacity factor")) taken.push_back("tokens go to all experts alike");
  if (says(variant, "first layer dense")) spec.moe.dense_layers = 1;
  if (says(variant, "layers dense")) spec.moe.dense_layers = std::llround(number_after(variant, "first").value_or(0));
  if (says(variant, "layer MoE")) spec.moe.every = std::llround(number_after(variant, "every").value_or(1));
  if (spec.moe.dense_layers > 0 || spec.moe.every > 1) spec.moe.dense_mlp = *row.mlp;
  return {};
}

// "MLA q_lora 1536 kv_lora 512 qk_nope 128 qk_rope 64 v 128"; missing ranks are DeepSeek-V3's.
void set_latent(const PublishedRow& row, DecoderSpec& spec, std::vector<std::string>& taken) {
  const std::string& variant = row.attention_variant;
  if (!says(variant, "MLA")) return;
  const auto number = [&](const char* words, std::int64_t otherwise) {
    const std::optional<double> told = number_after(variant, words);
    return told ? std::llround(*told) : otherwise;
  };
  if (!number_after(variant, "kv_lora")) taken.push_back("ranks of latent attention as DeepSeek-V3 has them");
  spec.mla = {number("q_lora", 1536), number("kv_lora", 512), number("qk_nope", 128), number("qk_rope", 64),
              number(" v ", 128)};
  spec.kv_heads = spec.heads;
}

// Megatron pads a vocabulary so that its shards are multiples of 128.
std::int64_t padded_vocabulary(std::int64_t tokens, std::int64_t parts) {
  return (tokens + 128 * parts - 1) / (128 * parts) * (128 * parts);
}

Status set_vocabulary(const PublishedRow& row, DecoderSpec& spec, std::vector<std::string>& taken) {
  if (row.vocabulary) {
    spec.vocabulary = *row.vocabulary;
    return {};
  }
  const std::optional<double> noted = number_after(row.notes, "(vocab");
  if (!noted) return refused("vocabulary not told");
  spec.vocabulary = padded_vocabulary(std::llround(*noted), row.tp.value_or(1));
  taken.push_back(fmt::format("vocabulary of {}, which its notes say and Megatron fills up", spec.vocabulary));
  return {};
}

Status set_heads(const PublishedRow& row, DecoderSpec& spec, std::vector<std::string>& taken) {
  std::optional<std::int64_t> heads = row.heads;
  if (const std::optional<double> noted = number_after(row.notes, "NHEADS"); !heads && noted) {
    heads = std::llround(*noted);
    taken.push_back(fmt::format("{} heads, which its notes say", *heads));
  }
  if (!heads) return refused("heads not told");
  spec.heads = *heads;
  spec.kv_heads = row.kv_heads.value_or(*heads);
  if (!row.head && spec.width % spec.heads != 0) return refused("heads that do not divide the width");
  spec.head = row.head.value_or(spec.width / spec.heads);
  return {};
}

// The fields that a BERT has.
BertSpec encoder_of(const DecoderSpec& spec) {
  BertSpec bert;
  bert.layers = spec.layers;
  bert.width = spec.width;
  bert.heads = spec.heads;
  bert.mlp = spec.mlp;
  bert.context = spec.context;
  bert.vocabulary = spec.vocabulary;
  bert.activation = spec.activation;
  return bert;
}

}  // namespace

Result<ModelSpec> row_model(const PublishedRow& row, std::vector<std::string>& taken) {
  for (const Unbuilt& unbuilt : kUnbuilt)
    if (says(row.*unbuilt.column, unbuilt.words)) return refused(std::string(unbuilt.reason));
  TRY(need_dimensions(row));
  const FeedForward* kind = nullptr;
  for (const FeedForward& candidate : kFeedForwards)
    if (kind == nullptr && row.mlp_type.starts_with(candidate.words)) kind = &candidate;
  if (kind == nullptr) return refused(fmt::format("feed-forward part '{}'", row.mlp_type));
  DecoderSpec spec;
  spec.family = kind->family;
  spec.activation = kind->activation;
  spec.gated = kind->gated;
  spec.bias = kind->bias;
  spec.norm = kind->norm;
  spec.position = says(row.attention, "ALiBi") ? Position::none : kind->position;
  spec.layers = *row.layers;
  spec.width = *row.width;
  spec.mlp = *row.mlp;
  spec.context = *row.sequence_length;
  spec.tied = row.tied;
  TRY(set_heads(row, spec, taken));
  TRY(set_vocabulary(row, spec, taken));
  TRY(set_experts(row, spec, taken));
  set_latent(row, spec, taken);
  spec.window = window_of(row, taken);
  if (says(row.notes, "LoRA") || says(row.id, "lora")) {
    spec.adapters.rank = 16;
    taken.push_back("adapters of rank 16");
  }
  ModelSpec model;
  if (row.notes.starts_with("encoder"))
    model.family = encoder_of(spec);
  else
    model.family = spec;
  return model;
}

}  // namespace systole::backtest
