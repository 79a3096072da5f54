#include "predict/backtest/row_recompute.h"

#include <algorithm>
#include <array>

#include "predict/backtest/row_words.h"

namespace systole::backtest {
namespace {

using Kind = RecomputeSpec::Kind;
using Names = std::vector<std::string_view>;

// Results of a block's products, by the names in describe/models/decoder/block.h. The result of attention is separate,
// because to compilers it is a kernel, not a product.
const Names& queries() {
  static const Names names{"attn.q", "attn.k", "attn.v"};
  return names;
}
const Names& before_feed_forward() {
  static const Names names{"attn.q", "attn.k", "attn.v", "attn.out"};
  return names;
}
const Names& products() {
  static const Names names{"attn.q",   "attn.k",     "attn.v",  "attn.out", "moe.logits",
                           "mlp.gate", "mlp.hidden", "mlp.out", "moe.out"};
  return names;
}

// Name of a policy in tables. The first match counts.
struct Policy {
  std::string_view words;
  std::optional<Kind> kind;  // empty: only some layers, which no policy can express
  Names save = {};
  bool and_attention = false;   // attention's result is saved too
  std::string_view taken = {};  // the assumption that is made, if the policy is not exact
};
const std::vector<Policy>& policies() {
  static constexpr std::string_view kOffload = "what is moved to the host counts as kept on the device";
  static const std::vector<Policy> all{
      {"none", Kind::none},
      {"full block recompute of", std::nullopt},
      {"every 2nd layer", std::nullopt},
      {"full", Kind::block},
      {"core_attn", Kind::attention},
      {"core attention", Kind::attention},
      {"cpu activation offload", Kind::none, {}, false, kOffload},
      {"minimal_flash", Kind::named, products(), true},
      {"minimal", Kind::named, products()},
      {"save_dot_only", Kind::named, products()},
      {"save_dot_except_mlpwi", Kind::named, {"attn.q", "attn.k", "attn.v", "attn.out", "mlp.out"}},
      {"save_dot_except_mlp", Kind::named, before_feed_forward()},
      {"qkv_proj_offloaded", Kind::named, queries(), false, kOffload},
      {"qkv_proj", Kind::named, queries()},
      // torchtitan: every second product, and the result of attention.
      {"op-level", Kind::named, {"attn.q", "attn.v", "mlp.gate", "mlp.out"}, true},
      {"ratio not stated",
       Kind::named,
       {"attn.q", "attn.v", "mlp.gate", "mlp.out"},
       true,
       "share of layers that are computed again not told: every second product of all"},
      {"layernorm", Kind::named, products(), true},
      {"moe_act", Kind::named, products(), true},
  };
  return all;
}

// MaxText's policies that list names: "host offload: decoder_layer_input,out_proj,q,k,v".
struct SavedWord {
  std::string_view word;
  Names names;
};
const std::vector<SavedWord>& saved_words() {
  static const std::vector<SavedWord> all{{"q", {"attn.q"}},         {"k", {"attn.k"}},
                                          {"v", {"attn.v"}},         {"qkv", queries()},
                                          {"context", {"attn.o"}},   {"out_proj", {"attn.out"}},
                                          {"mlpwo", {"mlp.out"}},    {"mlpwi", {"mlp.gate", "mlp.hidden"}},
                                          {"mlpwi_0", {"mlp.gate"}}, {"mlpwi_1", {"mlp.hidden"}}};
  return all;
}

Names listed(std::string_view text) {
  Names names;
  constexpr std::string_view kBetween = " ,;:/()";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    for (const SavedWord& word : saved_words())
      if (text.substr(at, end - at) == word.word) names.insert(names.end(), word.names.begin(), word.names.end());
    at = end + 1;
  }
  return names;
}

bool is_in(const ModelSpec& model, std::string_view name) {
  const auto* decoder = model.if_is<DecoderSpec>();
  if (name == "mlp.gate") return decoder != nullptr && decoder->gated;
  if (name.starts_with("moe.")) return model.experts() > 0;
  return true;
}

RecomputeSpec named(const Names& names, const ModelSpec& model) {
  RecomputeSpec spec{Kind::named, {}};
  for (const std::string_view name : names)
    if (is_in(model, name)) spec.save.emplace_back(name);
  return spec;
}

}  // namespace

Result<RecomputeSpec> row_recompute(const PublishedRow& row, const ModelSpec& model, std::vector<std::string>& taken) {
  const std::string& text = row.recompute;
  if (text.empty() || text == "not stated") {
    taken.push_back("nothing computed again, for the row does not say");
    return RecomputeSpec{};
  }
  for (const Policy& policy : policies()) {
    if (!says(text, policy.words)) continue;
    if (!policy.kind) return error(ErrorKind::unsupported, "recompute of some layers only");
    if (!policy.taken.empty()) taken.emplace_back(policy.taken);
    if (*policy.kind != Kind::named) return RecomputeSpec{*policy.kind, {}};
    Names names = policy.save;
    if (policy.and_attention) names.push_back("attn.o");
    return named(names, model);
  }
  if (says(text, "offload") || says(text, "save layer input") || says(text, "custom remat")) {
    if (says(text, "offload")) taken.emplace_back("what is moved to the host counts as kept on the device");
    if (says(text, "remat)")) return RecomputeSpec{Kind::block, {}};
    const Names names = listed(text);
    return names.empty() ? RecomputeSpec{Kind::block, {}} : named(names, model);
  }
  return error(ErrorKind::unsupported, "recompute '{}'", text);
}

}  // namespace systole::backtest
