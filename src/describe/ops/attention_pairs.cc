#include "describe/ops/attention_pairs.h"

#include <cmath>

#include "describe/ops/last_dim.h"

namespace systole::ops {
namespace {

std::int64_t window_of(const Attrs& attrs) { return attrs.find("window") == nullptr ? 0 : attrs.get_int("window"); }

}  // namespace

AttentionSizes sizes_of(const Type& q, const Type& k) {
  return {q.size(0), q.size(1), k.size(1), q.size(2), k.size(2), q.size(3)};
}

AttentionMasks masks_of(const Attrs& attrs, int first) {
  AttentionMasks masks;
  masks.window = window_of(attrs);
  masks.zigzag = attrs.find("zigzag") == nullptr ? 0 : attrs.get_int("zigzag");
  masks.ring = attrs.find("ring") != nullptr && attrs.get_bool("ring");
  masks.causal = attrs.get_bool("causal");
  if (attrs.get_bool("segments")) {
    masks.q_segments = first++;
    masks.k_segments = first++;
  }
  if (attrs.get_bool("offsets")) masks.offset = first++;
  if (attrs.find("bias_origin") != nullptr) {
    masks.bias = first++;
    masks.origin = attrs.get_int("bias_origin");
  }
  masks.num_operands = first;
  return masks;
}

std::int64_t AttentionCall::keys(std::int64_t i) const {
  return masks_.causal && masks_.offset < 0 && masks_.zigzag == 0 ? std::min(i + 1, z.s) : z.s;
}

std::int64_t AttentionCall::allowed(std::int64_t i) const {
  if (masks_.zigzag > 0) return in_row(i) + 1;
  if (masks_.window == 0) return keys(i);
  return masks_.offset >= 0 ? std::min(masks_.window, z.s)
                            : keys(i) - std::clamp<std::int64_t>(i + 1 - masks_.window, 0, z.s);
}

std::int64_t forward_pair(const AttentionMasks& masks, std::int64_t d) { return 4 * d + 3 + (masks.bias < 0 ? 0 : 1); }
std::int64_t backward_pair(const AttentionMasks& masks, std::int64_t d) {
  return 10 * d + 5 + (masks.bias < 0 ? 0 : 2);
}

std::int64_t useful_width(const Attrs& attrs, std::int64_t d) {
  return d + (attrs.find("value") == nullptr ? d : attrs.get_int("value"));
}

std::int64_t pairs_of(const AttentionMasks& masks, const AttentionSizes& z) {
  const std::int64_t rows = z.b * z.h;
  if (!masks.causal || masks.offset >= 0) return rows * z.t * (masks.window == 0 ? z.s : std::min(masks.window, z.s));
  const auto ramp = [&](std::int64_t queries) {  // Σ min(i + 1, s)
    const std::int64_t up = std::min(queries, z.s);
    return up * (up + 1) / 2 + (queries - up) * z.s;
  };
  return rows * (ramp(z.t) - (masks.window == 0 ? 0 : ramp(std::max<std::int64_t>(z.t - masks.window, 0))));
}

Type lse_type(const Type& q) {
  return Type(statistic_dtype(q.dtype), {q.size(0), q.size(2), q.size(1)}, {q.name(0), q.name(2), q.name(1)});
}

namespace {

void check_masks(const OpCall& call, const AttentionMasks& masks) {
  const AttentionSizes z = sizes_of(call.operand(0), call.operand(1));
  auto check = [&](const char* label, const char* name, int operand, const Type& want) {
    if (operand < 0 || call.operand(operand) == want) return;
    constraint(label, "{} is {}, not {}", name, to_string(call.operand(operand)), to_string(want));
  };
  check("attention_c4", "q_segments", masks.q_segments, Type(DType::i32, {z.b, z.t}));
  check("attention_c4", "k_segments", masks.k_segments, Type(DType::i32, {z.b, z.s}));
  check("attention_c5", "offset", masks.offset, Type(DType::i32, {z.b}));
  if (masks.offset >= 0 && !masks.causal) constraint("attention_c5", "an offset without causal masks nothing");
  if (call.attrs.find("window") == nullptr) return;
  if (masks.window < 1 || !masks.causal) {
    constraint("attention_c8", "a window of {} keys{}", masks.window, masks.causal ? "" : " without causal");
  }
}

void check_zigzag(const OpCall& call, const AttentionMasks& masks) {
  if (masks.ring && masks.zigzag == 0) constraint("attention_c12", "keys of rows in their own order go round no ring");
  if (call.attrs.find("zigzag") == nullptr) return;
  const AttentionSizes z = sizes_of(call.operand(0), call.operand(1));
  const bool plain = masks.causal && masks.offset < 0 && masks.bias < 0 && masks.window == 0;
  if (plain && masks.zigzag >= 2 && z.t == z.s && z.t % (2 * masks.zigzag) == 0) return;
  constraint("attention_c10", "zigzag order of {} parts for {} queries and {} keys{}", masks.zigzag, z.t, z.s,
             plain ? "" : ", which a causal mask alone goes with");
}

void check_bias(const OpCall& call, const AttentionMasks& masks) {
  if (masks.bias < 0) return;
  const Type &bias = call.operand(masks.bias), &q = call.operand(0);
  const bool table = bias.ndim() == 2 && bias.size(0) == q.size(2) && bias.dtype == statistic_dtype(q.dtype);
  if (table && masks.origin >= 0 && masks.origin < bias.size(1)) return;
  constraint("attention_c9", "bias_by_distance {} with bias_origin {} for q {}", to_string(bias), masks.origin,
             to_string(q));
}

}  // namespace

void check_attention(const OpCall& call, int first) {
  const AttentionMasks masks = masks_of(call.attrs, first);
  if (call.num_operands() != masks.num_operands) {
    constraint("attention_c1", "{} takes {} operands here, got {}", call.op.name, masks.num_operands,
               call.num_operands());
  }
  const Type &q = call.operand(0), &k = call.operand(1), &v = call.operand(2);
  if (!is_float(q.dtype) || q.ndim() != 4 || k.ndim() != 4 || !(k == v) || k.dtype != q.dtype ||
      k.size(0) != q.size(0) || k.size(3) != q.size(3)) {
    constraint("attention_c2", "q {}, k {}, v {}", to_string(q), to_string(k), to_string(v));
  }
  if (k.size(2) == 0 || q.size(2) % k.size(2) != 0) {
    constraint("attention_c3", "{} heads over {} kv_heads", q.size(2), k.size(2));
  }
  check_masks(call, masks);
  check_bias(call, masks);
  check_zigzag(call, masks);
  const double scale = call.attrs.get_double("scale");
  if (!(scale > 0)) constraint("attention_c7", "scale is {}", scale);
  if (call.attrs.find("value") == nullptr) return;
  const std::int64_t value = call.attrs.get_int("value");
  if (value < 1 || value > v.size(3)) constraint("attention_c11", "{} of v's {} are data", value, v.size(3));
}

char key_factor(const AttentionMasks& masks) { return masks.ring ? 't' : 's'; }

std::string mask_notation(const AttentionMasks& masks) {
  return (masks.q_segments >= 0 ? std::string(",bt,b") + key_factor(masks) : "") + (masks.offset >= 0 ? ",b" : "") +
         (masks.bias >= 0 ? ",hm" : "");
}

std::string whole_factors(const AttentionMasks& masks) {
  return std::string((masks.causal && masks.zigzag == 0) || masks.bias >= 0 ? "tsd" : "sd") +
         (masks.bias >= 0 ? "m" : "");
}

std::vector<OpAttr> attention_attrs() {
  return {{"causal", "bool", "key j is seen by query i when j <= i + offset"},
          {"scale", "double", "of the scores"},
          {"segments", "bool", "only equal ids see each other"},
          {"offsets", "bool", "index of query 0 among the keys, per batch entry"},
          {"window", "int", "key j is seen by query i when i + offset - j < window", false},
          {"bias_origin", "int", "with bias_by_distance: where distance 0 stands in it", false},
          {"zigzag", "int", "rows lie in zigzag order of so many parts (zigzag.h)", false},
          {"ring", "bool", "with zigzag: a device's keys go round to the others, else they are gathered", false},
          {"value", "int", "of v's last dim so many are data, the rest zeros, which are no model's work", false}};
}

std::vector<Value> apply_attention(const char* name, std::vector<Value> operands, const AttentionOptions& options) {
  const Value q = operands[0];
  if (options.q_segments) operands.push_back(*options.q_segments);
  if (options.k_segments) operands.push_back(*options.k_segments);
  if (options.offset) operands.push_back(*options.offset);
  if (options.bias_by_distance) operands.push_back(*options.bias_by_distance);
  const Type& type = q.type();
  const double d = type.ndim() == 4 && type.size(3) > 0 ? static_cast<double>(type.size(3)) : 1;
  Attrs attrs{{"causal", options.causal},
              {"scale", options.scale != 0 ? options.scale : 1 / std::sqrt(d)},
              {"segments", options.q_segments.has_value() || options.k_segments.has_value()},
              {"offsets", options.offset.has_value()}};
  if (options.window != 0) attrs.set("window", options.window);
  if (options.value != 0) attrs.set("value", options.value);
  if (options.bias_by_distance) attrs.set("bias_origin", options.bias_origin);
  if (options.zigzag != 0) attrs.set("zigzag", options.zigzag);
  if (options.ring) attrs.set("ring", true);
  return q.graph->apply(name, operands, attrs);
}

void skip_pairs(std::int64_t pairs, std::int64_t flops) {
  tally().skipped_flops += pairs * flops;
  tally().skipped_transcendentals += pairs;
}

}  // namespace systole::ops
