#include "describe/ops/last_dim.h"
#include "describe/ops/testing/list.h"

namespace systole {
namespace {

struct Sizes {
  std::int64_t b, t, s, h, n, d;
};

struct Options {
  bool causal, segments, offsets;
  std::int64_t window = 0;
  std::int64_t distances = 0;  // entries of the bias
  std::int64_t zigzag = 0;
  bool ring = false;
};

Attrs attrs_of(Options options) {
  Attrs attrs{{"causal", options.causal}, {"scale", 0.6}, {"segments", options.segments}, {"offsets", options.offsets}};
  if (options.window != 0) attrs.set("window", options.window);
  if (options.distances > 0) attrs.set("bias_origin", options.distances / 2);
  if (options.zigzag != 0) attrs.set("zigzag", options.zigzag);
  if (options.ring) attrs.set("ring", true);
  return attrs;
}

void add_masks(std::vector<CaseOperand>& operands, DType f, Sizes z, Options options) {
  if (options.segments) {
    operands.push_back(whole(Type(DType::i32, {z.b, z.t}), 0, 3));
    operands.push_back(whole(Type(DType::i32, {z.b, z.s}), 0, 3));
  }
  if (options.offsets) operands.push_back(whole(Type(DType::i32, {z.b}), -2, z.s));
  if (options.distances > 0) operands.push_back(real(Type(ops::statistic_dtype(f), {z.h, options.distances})));
}

OpCases both(DType f, Sizes z, Options options, bool gradient, bool shard) {
  const CaseOperand q = real(Type(f, {z.b, z.t, z.h, z.d})), k = real(Type(f, {z.b, z.s, z.n, z.d}));
  const CaseOperand lse = real(Type(ops::statistic_dtype(f), {z.b, z.h, z.t}), 1, 3);
  const std::string note = fmt::format("{}{}{}{}{}{}{}{}", options.causal ? "causal " : "full ",
                                       options.segments ? "segments " : "", options.offsets ? "offsets " : "",
                                       options.window > 0 ? fmt::format("window {} ", options.window) : "",
                                       options.distances > 0 ? "bias " : "", options.zigzag > 0 ? "zigzag " : "",
                                       options.ring ? "ring " : "", z.h == z.n ? "" : "grouped");
  OpCase forward{.op = "attention",
                 .operands = {q, k, k},
                 .attrs = attrs_of(options),
                 .note = note,
                 .reduction = z.s + z.d,
                 .gradient = gradient,
                 .shard = shard,
                 .cotangents = {0}};
  OpCase backward{.op = "attention_grad",
                  .operands = {q, k, k, q, lse, q},
                  .attrs = attrs_of(options),
                  .note = note,
                  .reduction = (z.s + z.t * (z.h / z.n)) * 2 + z.d + (options.distances > 0 ? z.b * z.t * z.s : 0),
                  .shard = shard};
  add_masks(forward.operands, f, z, options);
  add_masks(backward.operands, f, z, options);
  return {{forward, backward}, {}};
}

std::vector<BadCase> bad_cases(DType f) {
  const Attrs plain = attrs_of({true, false, false}), segments = attrs_of({true, true, false});
  const Attrs offsets = attrs_of({true, false, true});
  const Type q(f, {3, 5, 8, 6}), k(f, {3, 7, 4, 6}), q_segments(DType::i32, {3, 5}), k_segments(DType::i32, {3, 7});
  const Type lse(ops::statistic_dtype(f), {3, 8, 5});
  const Attrs upside_down{{"causal", true}, {"scale", -1.0}, {"segments", false}, {"offsets", false}};
  const auto valued = [&](std::int64_t value) {
    Attrs attrs = plain;
    attrs.set("value", value);
    return attrs;
  };
  return {
      {"attention_c1", "attention", {q, k, k}, segments},
      {"attention_c1", "attention_grad", {q, k, k}, plain},
      {"attention_c2", "attention", {q, k, Type(f, {3, 5, 4, 6})}, plain},
      {"attention_c2", "attention", {q, k.with(DType::f16), k.with(DType::f16)}, plain},
      {"attention_c3", "attention", {q, Type(f, {3, 7, 3, 6}), Type(f, {3, 7, 3, 6})}, plain},
      {"attention_c4", "attention", {q, k, k, k_segments, k_segments}, segments},
      {"attention_c4", "attention", {q, k, k, q_segments, q_segments}, segments},
      {"attention_c5", "attention", {q, k, k, Type(DType::i32, {5})}, offsets},
      {"attention_c5", "attention", {q, k, k, Type(DType::i32, {3})}, attrs_of({false, false, true})},
      {"attention_c6", "attention_grad", {q, k, k, q, Type(lse.dtype, {3, 5, 8}), q}, plain},
      {"attention_c6", "attention_grad", {q, k, k, k, lse, q}, plain},
      {"attention_c7", "attention", {q, k, k}, upside_down},
      {"attention_c8", "attention", {q, k, k}, attrs_of({true, false, false, -1})},
      {"attention_c8", "attention_grad", {q, k, k, q, lse, q}, attrs_of({false, false, false, 3})},
      {"attention_c1", "attention", {q, k, k}, attrs_of({true, false, false, 0, 9})},
      {"attention_c9", "attention", {q, k, k, Type(lse.dtype, {4, 9})}, attrs_of({true, false, false, 0, 9})},
      {"attention_c9", "attention", {q, k, k, Type(DType::i32, {8, 9})}, attrs_of({true, false, false, 0, 9})},
      {"attention_c9", "attention", {q, k, k, Type(lse.dtype, {8, 4})}, attrs_of({true, false, false, 0, 9})},
      {"attention_c10", "attention", {q, k, k}, attrs_of({true, false, false, 0, 0, 2})},
      {"attention_c10", "attention", {k, k, k}, attrs_of({true, false, false, 0, 0, 2})},
      {"attention_c10", "attention_grad", {q, q, q, q, lse, q}, attrs_of({false, false, false, 0, 0, 2})},
      {"attention_c12", "attention", {q, k, k}, attrs_of({true, false, false, 0, 0, 0, true})},
      {"attention_c11", "attention", {q, k, k}, valued(7)},
      {"attention_c11", "attention_grad", {q, k, k, q, lse, q}, valued(0)},
  };
}

}  // namespace

// Combinations of the options, with more keys than queries and with fewer, and distances beyond the bias on both sides.
OpCases cases::attention_cases(DType f) {
  OpCases cases;
  for (const Options options :
       {Options{false, false, false}, Options{false, true, false}, Options{true, false, false},
        Options{true, true, false}, Options{true, false, true}, Options{true, true, true},
        Options{true, false, false, 2}, Options{true, true, false, 3}, Options{true, true, true, 4},
        Options{false, true, false, 0, 5}, Options{true, false, false, 0, 4}, Options{true, true, true, 0, 5},
        Options{true, true, true, 3, 5}}) {
    cases += both(f, {3, 5, 7, 8, 4, 6}, options, true, false);
    cases += both(f, {3, 7, 5, 4, 4, 6}, options, true, false);
    cases += both(f, {12, 6, 5, 36, 18, 3}, options, false, true);
  }
  // Partitioning inserts and shards the zigzag form, so backends never see it. An axis of 2 shards rows of 8; one of 3
  // does not.
  for (const bool segments : {false, true}) {
    if (f != DType::f64) continue;
    cases += both(f, {3, 8, 8, 6, 3, 5}, {true, segments, false, 0, 0, 2}, true, false);
    for (const bool ring : {false, true})
      cases += both(f, {6, 8, 8, 12, 6, 3}, {true, segments, false, 0, 0, 2, ring}, false, true);
  }
  cases.bad = bad_cases(f);
  return cases;
}

}  // namespace systole
