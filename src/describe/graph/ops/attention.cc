// attention with grouped queries (Vaswani et al., arXiv:1706.03762; Ainslie et al., arXiv:2305.13245), and its
// gradient.
//
//   s_ij = scale q_i·k_j for the keys j that query i sees      lse_i = ln Σ_j e^s_ij      o_i = Σ_j e^(s_ij - lse_i)
//   v_j p_ij = e^(s_ij - lse_i)      Δ_i = o_i·g_i      ds_ij = p_ij (g_i·v_j - Δ_i) scale dq_i = Σ_j ds_ij k_j dk_j =
//   Σ_i ds_ij q_i        dv_j = Σ_i p_ij g_i
//
// No value is t × s: the gradient computes the scores again from q, k and lse (Dao et al., arXiv:2205.14135). Head a of
// q uses head a / (h / n) of k and v. Query i sees key j when, each where asked for,
//   causal      j ≤ i + offset[b]          (offset 0 without the operand)
//   window      i + offset[b] - j < window (a sliding window: Beltagy et al., arXiv:2004.05150; Jiang et al.,
//               arXiv:2310.06825)
//   segments    q_segments[b, i] = k_segments[b, j]
// A query that sees nothing gets o = 0, lse = -inf and gradients of 0.
//
// With bias_by_distance[h, m] the score of a pair is scale q_i·k_j + bias[a, clamp(j - i - offset[b] + bias_origin, 0,
// m - 1)], so that a table as long as the distances that differ will do for any t and s (Raffel et al.,
// arXiv:1910.10683, section 2.1, whose buckets are a table looked up at the bucket of each distance). Its gradient is
// the sum of p_ij (g_i·v_j - Δ_i) over the pairs of a place in it.
//
// Operands: q[b, t, h, d], k and v[b, s, n, d]; of the gradient o, lse and g after them; then q_segments, k_segments
// with `segments`; then offset with `offsets`; then bias_by_distance with `bias_origin`.
// Constraints: C1 operand counts as the flags say. C2 q, k, v of one float type and of one b and d, k and v alike. C3 n
// divides h. C4 segments i32[b, t] and i32[b, s]. C5 offset i32[b], with causal only. C6 o and g like q, lse f32[b, h,
// t] (f64 for f64). C7 scale > 0. C8 bias_by_distance f32[h, m] (f64 for f64) with 0 <= bias_origin < m. C9 window ≥ 1,
// with causal only. Work: of the pairs that shape lets through: causal without offsets Σ_i min(i + 1, s), of which a
// window leaves at most its width; with offsets, which are data, t s, or t min(window, s). Forward, a pair is 4d + 3
// and an exp, a query d + 1 and a log, and 4d of a pair count for utilisation. Gradient, a pair is 10d + 5 and an exp,
// a query 2d, and 8d of a pair count: the scores done again do not. A bias adds 1 and, to the gradient's pair, 2. Pairs
// masked by data are skipped. Sharding: batch and heads are cut anywhere (the heads of q and of k, v together); queries
// when not causal and without a bias, whose distances need the whole.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "describe/graph/op.h"
#include "describe/graph/ops/last_dim.h"
#include "describe/graph/ops/list.h"
#include "describe/graph/ops/ops.h"

namespace systole {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int kForward = 3, kBackward = 6;  // operands before segments, offset and bias

struct Sizes {
  std::int64_t b, t, s, h, n, d;
};

Sizes sizes_of(const Type& q, const Type& k) {
  return {q.size(0), q.size(1), k.size(1), q.size(2), k.size(2), q.size(3)};
}

// Where the operands that the flags ask for lie; -1 without them.
struct Masks {
  int q_segments = -1, k_segments = -1, offset = -1, bias = -1, num_operands = 0;
  bool causal = false;
  std::int64_t origin = 0;  // of the bias
  std::int64_t window = 0;  // 0: none
};

std::int64_t window_of(const Attrs& attrs) { return attrs.find("window") == nullptr ? 0 : attrs.get_int("window"); }

Masks masks_of(const Attrs& attrs, int first) {
  Masks masks;
  masks.window = window_of(attrs);
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

// No key from here on is seen by query i, by shape.
std::int64_t keys_of(const Masks& masks, std::int64_t i, std::int64_t s) {
  return masks.causal && masks.offset < 0 ? std::min(i + 1, s) : s;
}

// Keys that shape lets query i see.
std::int64_t allowed_of(const Masks& masks, std::int64_t i, std::int64_t s) {
  const std::int64_t keys = keys_of(masks, i, s);
  if (masks.window == 0) return keys;
  return masks.offset >= 0 ? std::min(masks.window, s) : keys - std::clamp<std::int64_t>(i + 1 - masks.window, 0, s);
}

// Flops of a pair.
std::int64_t forward_pair(const Masks& masks, std::int64_t d) { return 4 * d + 3 + (masks.bias < 0 ? 0 : 1); }
std::int64_t backward_pair(const Masks& masks, std::int64_t d) { return 10 * d + 5 + (masks.bias < 0 ? 0 : 2); }

std::int64_t pairs_of(const Masks& masks, const Sizes& z) {
  const std::int64_t rows = z.b * z.h;
  if (!masks.causal || masks.offset >= 0) return rows * z.t * (masks.window == 0 ? z.s : std::min(masks.window, z.s));
  const auto ramp = [&](std::int64_t queries) {  // Σ min(i + 1, s)
    const std::int64_t up = std::min(queries, z.s);
    return up * (up + 1) / 2 + (queries - up) * z.s;
  };
  return rows * (ramp(z.t) - (masks.window == 0 ? 0 : ramp(std::max<std::int64_t>(z.t - masks.window, 0))));
}

Type lse_type(const Type& q) {
  return Type(ops::statistic_dtype(q.dtype), {q.size(0), q.size(2), q.size(1)}, {q.name(0), q.name(2), q.name(1)});
}

void check_masks(const OpCall& call, const Masks& masks) {
  const Sizes z = sizes_of(call.operand(0), call.operand(1));
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
    constraint("attention_c9", "a window of {} keys{}", masks.window, masks.causal ? "" : " without causal");
  }
}

void check_bias(const OpCall& call, const Masks& masks) {
  if (masks.bias < 0) return;
  const Type &bias = call.operand(masks.bias), &q = call.operand(0);
  const bool table = bias.ndim() == 2 && bias.size(0) == q.size(2) && bias.dtype == ops::statistic_dtype(q.dtype);
  if (table && masks.origin >= 0 && masks.origin < bias.size(1)) return;
  constraint("attention_c8", "bias_by_distance {} with bias_origin {} for q {}", to_string(bias), masks.origin,
             to_string(q));
}

void check_call(const OpCall& call, int first) {
  const Masks masks = masks_of(call.attrs, first);
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
  const double scale = call.attrs.get_double("scale");
  if (!(scale > 0)) constraint("attention_c7", "scale is {}", scale);
}

std::vector<Type> infer(const OpCall& call) {
  check_call(call, kForward);
  return {call.operand(0), lse_type(call.operand(0))};
}

std::vector<Type> infer_grad(const OpCall& call) {
  check_call(call, kBackward);
  const Type &q = call.operand(0), &o = call.operand(3), &lse = call.operand(4), &g = call.operand(5);
  if (!(o == q) || !(g == q) || !(lse == lse_type(q))) {
    constraint("attention_c6", "o {}, lse {}, g {} of q {}", to_string(o), to_string(lse), to_string(g), to_string(q));
  }
  std::vector<Type> results{q, call.operand(1), call.operand(2)};
  if (const Masks masks = masks_of(call.attrs, kBackward); masks.bias >= 0) results.push_back(call.operand(masks.bias));
  return results;
}

Gradients gradient(GradientCall& call) {
  if (call.cotangent(1)) fail(error(ErrorKind::unsupported, "no gradient flows through the lse of attention"));
  const Masks masks = masks_of(call.attrs(), kForward);
  AttentionOptions options{masks.causal, call.attrs().get_double("scale"), {}, {}, {}};
  options.window = masks.window;
  if (masks.q_segments >= 0) options.q_segments = call.operand(masks.q_segments);
  if (masks.k_segments >= 0) options.k_segments = call.operand(masks.k_segments);
  if (masks.offset >= 0) options.offset = call.operand(masks.offset);
  if (masks.bias >= 0) {
    options.bias_by_distance = call.operand(masks.bias);
    options.bias_origin = masks.origin;
  }
  const AttentionGrad d = attention_grad(call.operand(0), call.operand(1), call.operand(2), call.result(0),
                                         call.result(1), *call.cotangent(0), options);
  Gradients gradients(static_cast<std::size_t>(call.num_operands()));
  gradients[0] = d.dq;
  gradients[1] = d.dk;
  gradients[2] = d.dv;
  if (masks.bias >= 0) gradients[static_cast<std::size_t>(masks.bias)] = d.dbias;
  return gradients;
}

Work work(const OpCall& call, std::span<const Type> results) {
  const Sizes z = sizes_of(call.operand(0), call.operand(1));
  const Masks masks = masks_of(call.attrs, kForward);
  const std::int64_t pairs = pairs_of(masks, z), queries = z.b * z.h * z.t;
  Work work = moves(call.operands, results);
  work.flops = pairs * forward_pair(masks, z.d) + queries * (z.d + 1);
  work.transcendentals = pairs + queries;
  work.model_flops = pairs * 4 * z.d;
  return work;
}

Work work_grad(const OpCall& call, std::span<const Type> results) {
  const Sizes z = sizes_of(call.operand(0), call.operand(1));
  const Masks masks = masks_of(call.attrs, kBackward);
  const std::int64_t pairs = pairs_of(masks, z), queries = z.b * z.h * z.t;
  Work work = moves(call.operands, results);
  work.flops = pairs * backward_pair(masks, z.d) + queries * 2 * z.d;
  work.transcendentals = pairs;
  work.model_flops = pairs * 8 * z.d;
  return work;
}

std::string mask_notation(const Masks& masks) {
  return std::string(masks.q_segments >= 0 ? ",bt,bs" : "") + (masks.offset >= 0 ? ",b" : "") +
         (masks.bias >= 0 ? ",hm" : "");
}

std::string whole_factors(const Masks& masks) {
  return std::string(masks.causal || masks.bias >= 0 ? "tsd" : "sd") + (masks.bias >= 0 ? "m" : "");
}

ShardingRule sharding(const OpCall& call) {
  const Masks masks = masks_of(call.attrs, kForward);
  return sharding_rule("bthd,bshd,bshd" + mask_notation(masks) + "->bthd,bht", "", whole_factors(masks));
}

// Cut queries leave dk and dv partial sums, a cut batch that of the bias.
ShardingRule sharding_grad(const OpCall& call) {
  const Masks masks = masks_of(call.attrs, kBackward);
  return sharding_rule(
      "bthd,bshd,bshd,bthd,bht,bthd" + mask_notation(masks) + "->bthd,bshd,bshd" + (masks.bias >= 0 ? ",hm" : ""),
      masks.bias >= 0 ? "b"
      : masks.causal  ? ""
                      : "t",
      whole_factors(masks));
}

// The operands of a call by name, and what a query sees.
class Call {
 public:
  Call(const ReferenceCall& call, int first)
      : z(sizes_of(call.operands[0].type, call.operands[1].type)),
        q(call.operands[0]),
        k(call.operands[1]),
        v(call.operands[2]),
        scale(call.attrs.get_double("scale")),
        flops_forward(forward_pair(masks_of(call.attrs, first), z.d)),
        flops_backward(backward_pair(masks_of(call.attrs, first), z.d)),
        call_(call),
        masks_(masks_of(call.attrs, first)) {}

  std::int64_t keys(std::int64_t i) const { return keys_of(masks_, i, z.s); }
  std::int64_t allowed(std::int64_t i) const { return allowed_of(masks_, i, z.s); }
  bool sees(std::int64_t b, std::int64_t i, std::int64_t j) const {
    const std::int64_t place = i + (masks_.offset >= 0 ? mask(masks_.offset, b) : 0);
    if (masks_.causal && j > place) return false;
    if (masks_.window > 0 && place - j >= masks_.window) return false;
    if (masks_.q_segments < 0) return true;
    return mask(masks_.q_segments, b * z.t + i) == mask(masks_.k_segments, b * z.s + j);
  }
  // The score of a pair, and where its bias lies.
  Scalar score(std::int64_t b, std::int64_t i, std::int64_t j, std::int64_t a) const {
    const Scalar product = dot(q, query(b, i, a), k, key(b, j, a)) * scale;
    return has_bias() ? product + call_.operands[static_cast<std::size_t>(masks_.bias)].at(bias(b, i, j, a)) : product;
  }
  bool has_bias() const { return masks_.bias >= 0; }
  std::int64_t bias_size() const {
    return has_bias() ? call_.operands[static_cast<std::size_t>(masks_.bias)].type.num_elements() : 0;
  }
  std::int64_t bias(std::int64_t b, std::int64_t i, std::int64_t j, std::int64_t a) const {
    const std::int64_t m = bias_size() / z.h, offset = masks_.offset < 0 ? 0 : mask(masks_.offset, b);
    return a * m + std::clamp<std::int64_t>(j - i - offset + masks_.origin, 0, m - 1);
  }
  // Index of element 0 of a query, and of a key of the head that query head a uses.
  std::int64_t query(std::int64_t b, std::int64_t i, std::int64_t a) const { return ((b * z.t + i) * z.h + a) * z.d; }
  std::int64_t key(std::int64_t b, std::int64_t j, std::int64_t a) const {
    return ((b * z.s + j) * z.n + a / (z.h / z.n)) * z.d;
  }
  std::int64_t row(std::int64_t b, std::int64_t i, std::int64_t a) const { return (b * z.h + a) * z.t + i; }  // of lse
  Scalar dot(const TensorView& x, std::int64_t at_x, const TensorView& y, std::int64_t at_y) const {
    Scalar sum(0);
    for (std::int64_t c = 0; c < z.d; ++c) sum += x.at(at_x + c) * y.at(at_y + c);
    return sum;
  }
  template <typename Visit>
  void for_each_query(Visit visit) const {
    for (std::int64_t b = 0; b < z.b; ++b) {
      for (std::int64_t i = 0; i < z.t; ++i) {
        for (std::int64_t a = 0; a < z.h; ++a) visit(b, i, a);
      }
    }
  }

  const Sizes z;
  const TensorView &q, &k, &v;
  const Scalar scale;
  const std::int64_t flops_forward, flops_backward;  // of a pair

 private:
  std::int64_t mask(int operand, std::int64_t at) const {
    return call_.operands[static_cast<std::size_t>(operand)].integer(at);
  }
  const ReferenceCall& call_;
  const Masks masks_;
};

void skip(std::int64_t pairs, std::int64_t flops) {
  tally().skipped_flops += pairs * flops;
  tally().skipped_transcendentals += pairs;
}

struct Pair {
  std::int64_t key;  // index of its element 0
  Scalar score;
};

void reference_query(const Call& call, const ReferenceCall& raw, std::int64_t b, std::int64_t i, std::int64_t a) {
  const std::int64_t query = call.query(b, i, a), d = call.z.d;
  std::vector<Pair> seen;
  Scalar top(-kInf), sum(0);
  for (std::int64_t j = 0; j < call.keys(i); ++j) {
    if (!call.sees(b, i, j)) continue;
    const std::int64_t key = call.key(b, j, a);
    seen.push_back({key, call.score(b, i, j, a)});
    top = max(top, seen.back().score);
  }
  skip(call.allowed(i) - static_cast<std::int64_t>(seen.size()), call.flops_forward);
  const Scalar shift = top == Scalar(-kInf) ? Scalar(0) : top;
  std::vector<Scalar> o(static_cast<std::size_t>(d));
  for (const Pair& pair : seen) {
    const Scalar p = exp(pair.score - shift);
    sum += p;
    for (std::int64_t c = 0; c < d; ++c) o[static_cast<std::size_t>(c)] += p * call.v.at(pair.key + c);
  }
  const Scalar divisor = sum == Scalar(0) ? Scalar(1) : sum;
  for (std::int64_t c = 0; c < d; ++c) raw.results[0].set(query + c, o[static_cast<std::size_t>(c)] / divisor);
  raw.results[1].set(call.row(b, i, a), shift + log(sum));
}

void reference(const ReferenceCall& raw) {
  const Call call(raw, kForward);
  call.for_each_query([&](std::int64_t b, std::int64_t i, std::int64_t a) { reference_query(call, raw, b, i, a); });
}

struct Sums {
  std::vector<Scalar> dq, dk, dv, dbias;
};

void reference_grad_query(const Call& call, const ReferenceCall& raw, Sums& sums, std::int64_t b, std::int64_t i,
                          std::int64_t a) {
  const TensorView &o = raw.operands[3], &g = raw.operands[5];
  const std::int64_t query = call.query(b, i, a), d = call.z.d;
  const Scalar lse = raw.operands[4].at(call.row(b, i, a)), delta = call.dot(o, query, g, query);
  std::int64_t seen = 0;
  for (std::int64_t j = 0; j < call.keys(i); ++j) {
    if (!call.sees(b, i, j)) continue;
    ++seen;
    const std::int64_t key = call.key(b, j, a);
    const Scalar e = exp(call.score(b, i, j, a) - lse);
    const Scalar p = lse == Scalar(-kInf) ? Scalar(0) : e;
    const Scalar of_score = p * (call.dot(g, query, call.v, key) - delta), ds = of_score * call.scale;
    if (call.has_bias()) sums.dbias[static_cast<std::size_t>(call.bias(b, i, j, a))] += of_score;
    for (std::int64_t c = 0; c < d; ++c) {
      sums.dv[static_cast<std::size_t>(key + c)] += p * g.at(query + c);
      sums.dq[static_cast<std::size_t>(query + c)] += ds * call.k.at(key + c);
      sums.dk[static_cast<std::size_t>(key + c)] += ds * call.q.at(query + c);
    }
  }
  skip(call.allowed(i) - seen, call.flops_backward);
}

void reference_grad(const ReferenceCall& raw) {
  const Call call(raw, kBackward);
  const auto queries = static_cast<std::size_t>(call.q.type.num_elements());
  const auto keys = static_cast<std::size_t>(call.k.type.num_elements());
  Sums sums{std::vector<Scalar>(queries), std::vector<Scalar>(keys), std::vector<Scalar>(keys),
            std::vector<Scalar>(static_cast<std::size_t>(call.bias_size()))};
  call.for_each_query(
      [&](std::int64_t b, std::int64_t i, std::int64_t a) { reference_grad_query(call, raw, sums, b, i, a); });
  for (std::size_t i = 0; i < queries; ++i) raw.results[0].set(static_cast<std::int64_t>(i), sums.dq[i]);
  for (std::size_t i = 0; i < keys; ++i) {
    raw.results[1].set(static_cast<std::int64_t>(i), sums.dk[i]);
    raw.results[2].set(static_cast<std::int64_t>(i), sums.dv[i]);
  }
  for (std::size_t i = 0; i < sums.dbias.size(); ++i) raw.results[3].set(static_cast<std::int64_t>(i), sums.dbias[i]);
}

std::vector<OpAttr> attention_attrs() {
  return {{"causal", "bool", "key j is seen by query i when j <= i + offset"},
          {"scale", "double", "of the scores"},
          {"segments", "bool", "only equal ids see each other"},
          {"offsets", "bool", "index of query 0 among the keys, per batch entry"},
          {"window", "int", "key j is seen by query i when i + offset - j < window", false},
          {"bias_origin", "int", "with bias_by_distance: where distance 0 stands in it", false}};
}

OpDef make_attention() {
  OpDef op;
  op.name = "attention";
  op.summary = "o = softmax(scale q k^T + mask) v with grouped queries, lse = ln sum exp; arXiv:2205.14135";
  op.signature =
      "(q: float[b, t, h, d], k: float[b, s, n, d], v: like k, q_segments: i32[b, t], k_segments: i32[b, s] with "
      "segments, offset: i32[b] with offsets, bias_by_distance: f32[h, m] with bias_origin) -> (o: like q, lse: f32[b, "
      "h, t])";
  op.attrs = attention_attrs();
  op.infer = infer;
  op.gradient = gradient;
  op.work = work;
  op.sharding = sharding;
  op.reference = reference;
  op.precision = PrecisionRule::compute;
  return op;
}

OpDef make_attention_grad() {
  OpDef op;
  op.name = "attention_grad";
  op.summary = "the gradient of attention, the scores computed again from q, k and lse; arXiv:2205.14135";
  op.signature =
      "(q: float[b, t, h, d], k: float[b, s, n, d], v: like k, o: like q, lse: f32[b, h, t], g: like q, q_segments: "
      "i32[b, t], k_segments: i32[b, s] with segments, offset: i32[b] with offsets, bias_by_distance: f32[h, m] with "
      "bias_origin) -> (dq: like q, dk: like k, dv: like k, dbias: like bias_by_distance)";
  op.attrs = attention_attrs();
  op.infer = infer_grad;
  op.work = work_grad;
  op.sharding = sharding_grad;
  op.reference = reference_grad;
  op.precision = PrecisionRule::f32;
  return op;
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
  if (options.bias_by_distance) attrs.set("bias_origin", options.bias_origin);
  return q.graph->apply(name, operands, attrs);
}

}  // namespace

std::vector<OpDef> ops::attention_ops() { return {make_attention(), make_attention_grad()}; }

Attention attention(Value q, Value k, Value v, const AttentionOptions& options) {
  const std::vector<Value> results = apply_attention("attention", {q, k, v}, options);
  return {results[0], results[1]};
}

AttentionGrad attention_grad(Value q, Value k, Value v, Value o, Value lse, Value g, const AttentionOptions& options) {
  const std::vector<Value> results = apply_attention("attention_grad", {q, k, v, o, lse, g}, options);
  return {results[0], results[1], results[2], results.size() > 3 ? std::optional(results[3]) : std::nullopt};
}

}  // namespace systole
