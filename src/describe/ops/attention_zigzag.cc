#include "describe/ops/attention_zigzag.h"

#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "describe/ops/attention_pairs.h"
#include "describe/ops/last_dim.h"

namespace systole::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// A chunk of queries or keys, from each operand that the op reads for them.
struct Chunk {
  std::vector<Value> tensors;  // q, and for the gradient o, lse, g; or k and v
  std::optional<Value> segments;
};

// Another device of the axis, relative to this one.
struct Peer {
  Value early;   // index of its early chunk among all chunks
  Value behind;  // bool[]: whether it lies behind this device
  Value half;    // i64[]: the half of each device in the second pair of chunks: 1 if behind, else 0
};

class Cut {
 public:
  Cut(const OpCall& local, const char* name, int first, std::string_view axis, std::int64_t parts)
      : graph(name),
        axis_(axis),
        parts_(parts),
        masks_(masks_of(local.attrs, first)),
        scale_(local.attrs.get_double("scale")),
        value_(local.attrs.find("value") == nullptr ? 0 : local.attrs.get_int("value")) {
    if (masks_.zigzag != parts) {
      fail(error(ErrorKind::unsupported, "rows in zigzag order of {} parts are cut into {} over '{}'", masks_.zigzag,
                 parts, axis)
               .hinted("heads that the axis model divides; or a mesh without context"));
    }
    for (int i = 0; i < local.num_operands(); ++i)
      operands.push_back(graph.input("operand" + std::to_string(i), local.operand(i)));
    offset_ = graph.input("offset", Type(DType::i64, {}));
    me_ = part_at(operands[0].type().size(1));
    statistic = statistic_dtype(operands[0].dtype());
  }

  Graph graph;
  std::vector<Value> operands;
  DType statistic = DType::f32;

  std::int64_t parts() const { return parts_; }
  bool ring() const { return masks_.ring; }
  Value all_reduced(Value x) const { return all_reduce(x, axis_, parts_); }
  Value sent_on(Value x) const { return collective_permute(x, axis_, parts_, 1); }

  // Ring: makes the keys of step `steps` current and sends them on for the next step.
  void begin_step(std::int64_t steps) {
    if (!ring()) return;
    here_ = steps == 0 ? chunk(kKeys, masks_.k_segments, [](Value x, int) { return x; }) : coming_;
    if (steps + 1 == parts_) return;
    coming_ = here_;
    for (Value& x : coming_.tensors) x = sent_on(x);
    if (coming_.segments) coming_.segments = sent_on(*coming_.segments);
  }

  // Half of this device's queries, by number or by an i64[].
  Chunk queries(std::span<const int> which, int half) const {
    return chunk(which, masks_.q_segments, [&](Value x, int dim) { return half_of(x, dim, half); });
  }
  Chunk queries(std::span<const int> which, Value half) const {
    return chunk(which, masks_.q_segments, [&](Value x, int dim) { return take_part(x, half, dim, 2); });
  }
  Chunk own_keys(int half) const {
    if (!ring()) return keys(add(twice(me_), full_like(me_, half)));
    return chunk(kKeys, masks_.k_segments, [&](Value x, int dim) { return half_of(x, dim, half); });
  }
  // The early chunk of the device met in this step, and its chunk `half`.
  Chunk early_keys(const Peer& peer) const {
    return ring() ? taken(here_, [](Value x) { return half_of(x, 1, 0); }) : keys(peer.early);
  }
  Chunk either_keys(const Peer& peer) const {
    if (!ring()) return keys(add(peer.early, peer.half));
    return taken(here_, [&](Value x) { return take_part(x, peer.half, 1, 2); });
  }

  // The device `steps` before this one on the axis, cyclically.
  Peer peer(std::int64_t steps) const {
    const Value from = sub(me_, full_like(me_, static_cast<double>(steps)));
    const Value behind = compare(from, full_like(from, 0), "lt");
    return {twice(around(from)), behind, select(behind, full_like(me_, 1), full_like(me_, 0))};
  }
  // Number of steps from `device` to this device.
  Value steps_to(std::int64_t device) const { return around(sub(me_, full_like(me_, static_cast<double>(device)))); }

  AttentionOptions options(bool causal, const Chunk& q, const Chunk& k) const {
    AttentionOptions options{causal, scale_, q.segments, k.segments, {}};
    options.value = value_;
    return options;
  }

 private:
  static constexpr std::array kKeys{1, 2};

  static Value half_of(Value x, int dim, int half) {
    const std::int64_t size = x.type().size(dim) / 2;
    return slice_dim(x, dim, half * size, (half + 1) * size);
  }
  Chunk keys(Value index) const {
    return chunk(kKeys, masks_.k_segments, [&](Value x, int dim) { return take_part(x, index, dim, 2 * parts_); });
  }
  template <typename Take>
  static Chunk taken(Chunk whole, Take take) {
    for (Value& x : whole.tensors) x = take(x);
    if (whole.segments) whole.segments = take(*whole.segments);
    return whole;
  }
  template <typename Take>
  Chunk chunk(std::span<const int> which, int segments, Take take) const {
    Chunk made;
    for (const int i : which) {
      const Value x = operands[static_cast<std::size_t>(i)];
      made.tensors.push_back(take(x, x.type().ndim() == 3 ? 2 : 1));  // lse[b, h, t]
    }
    if (segments >= 0) made.segments = take(operands[static_cast<std::size_t>(segments)], 1);
    return made;
  }

  // Index of the part of `size` that begins at the offset. Counts, because there is no integer division.
  Value part_at(std::int64_t size) const {
    Value index = full_like(offset_, 0);
    for (std::int64_t p = 1; p < parts_; ++p) {
      const Value reached = compare(offset_, full_like(offset_, static_cast<double>(p * size)), "ge");
      index = add(index, select(reached, full_like(offset_, 1), full_like(offset_, 0)));
    }
    return index;
  }
  Value around(Value index) const {
    const Value n = full_like(index, static_cast<double>(parts_));
    return select(compare(index, full_like(index, 0), "lt"), add(index, n), index);
  }
  static Value twice(Value x) { return add(x, x); }

  const std::string_view axis_;
  const std::int64_t parts_;
  const AttentionMasks masks_;
  const double scale_;
  const std::int64_t value_;  // data width of v; 0: all of d
  Value offset_, me_;
  Chunk here_, coming_;  // ring: keys of this step and of the next
};

Value where(Value flag, Value x, double otherwise) {
  return select(broadcast_scalar(flag, x.type()), x, full_like(x, otherwise));
}
Value where_not(Value flag, Value x, double otherwise) {
  return select(broadcast_scalar(flag, x.type()), full_like(x, otherwise), x);
}

// Online softmax of queries over the keys so far: o in the statistics' type, and lse.
struct Running {
  Value o, lse;
};

// Broadcasts w[b, h, t] to the shape of o[b, t, h, d].
Value along_heads(Value w, Value o) {
  return broadcast(transpose(w, std::array{0, 2, 1}), o.type(), std::array{0, 1, 2});
}

// Merges the results over two sets of keys. Queries that saw no key keep o = 0 and lse = -inf.
Running joined(const Running& a, const Running& b) {
  const Value zero = full_like(a.lse, 0), top = max(a.lse, b.lse);
  const Value shift = select(compare(top, full_like(top, -kInf), "eq"), zero, top);
  const Value of_a = exp(sub(a.lse, shift)), of_b = exp(sub(b.lse, shift)), sum = add(of_a, of_b);
  const Value divisor = select(compare(sum, zero, "eq"), full_like(sum, 1), sum);
  return {add(mul(a.o, along_heads(div(of_a, divisor), a.o)), mul(b.o, along_heads(div(of_b, divisor), b.o))),
          add(shift, log(sum))};
}

// The gradients of queries and keys, one pair of chunks at a time.
class Backward {
 public:
  explicit Backward(Cut& cut) : cut_(cut), first_(cut.queries(kOfQuery, 0)), second_(cut.queries(kOfQuery, 1)) {}

  // Gradients of keys and values.
  struct OfKeys {
    Value dk, dv;
  };
  static OfKeys sum(const OfKeys& a, const OfKeys& b) { return {add(a.dk, b.dk), add(a.dv, b.dv)}; }
  static OfKeys joined(const OfKeys& a, const OfKeys& b) {
    return {concatenate(std::array{a.dk, b.dk}, 1), concatenate(std::array{a.dv, b.dv}, 1)};
  }

  // The causal pairs of this device's own chunks, e|e and l|l. REQUIRES: called first.
  struct Own {
    OfKeys early, late;
  };
  Own own() {
    const AttentionGrad a = grad(first_, cut_.own_keys(0), true), b = grad(second_, cut_.own_keys(1), true);
    early_ = a.dq, late_ = b.dq;
    return {{a.dk, a.dv}, {b.dk, b.dv}};
  }
  // The whole pair of this device's own chunks, l|e.
  OfKeys across() {
    const AttentionGrad d = grad(second_, cut_.own_keys(0), false);
    late_ = add(late_, d.dq);
    return {d.dk, d.dv};
  }
  // The pairs with the device met in a step.
  OfKeys meet(std::int64_t steps) {
    const Peer peer = cut_.peer(steps);
    const AttentionGrad a = grad(second_, cut_.early_keys(peer), false);
    const AttentionGrad b = grad(cut_.queries(kOfQuery, peer.half), cut_.either_keys(peer), false);
    late_ = add(late_, add(a.dq, where(peer.behind, b.dq, 0)));
    early_ = add(early_, where_not(peer.behind, b.dq, 0));
    const auto both = [&](Value of_a, Value of_b) {
      return concatenate(std::array{add(of_a, where_not(peer.behind, of_b, 0)), where(peer.behind, of_b, 0)}, 1);
    };
    const Value dk = both(a.dk, b.dk);
    return {dk, both(a.dv, b.dv)};
  }
  Value dq() const { return cast(concatenate(std::array{early_, late_}, 1), cut_.operands[0].dtype()); }

 private:
  static constexpr std::array kOfQuery{0, 3, 4, 5};

  AttentionGrad grad(const Chunk& q, const Chunk& k, bool causal) const {
    AttentionGrad d = attention_grad(q.tensors[0], k.tensors[0], k.tensors[1], q.tensors[1], q.tensors[2], q.tensors[3],
                                     cut_.options(causal, q, k));
    for (Value* x : {&d.dq, &d.dk, &d.dv}) *x = cast(*x, cut_.statistic);
    return d;
  }

  Cut& cut_;
  const Chunk first_, second_;
  Value early_, late_;  // dq of the two chunks
};

// Gathered keys: sums each device's contributions over the axis, in the order of the devices.
void gathered_grad(Cut& cut, Backward& backward) {
  const Backward::Own own = backward.own();
  const Backward::OfKeys across = backward.across();
  // Per device met, in the order of steps: this device's contribution to its two chunks.
  std::vector<Value> dk{concatenate(std::array{add(own.early.dk, across.dk), own.late.dk}, 1)},
      dv{concatenate(std::array{add(own.early.dv, across.dv), own.late.dv}, 1)};
  for (std::int64_t steps = 1; steps < cut.parts(); ++steps) {
    const Backward::OfKeys met = backward.meet(steps);
    dk.push_back(met.dk);
    dv.push_back(met.dv);
  }
  const auto summed = [&](const std::vector<Value>& by_steps, Value like) {
    const Value all = cast(concatenate(by_steps, 1), like.dtype());
    std::vector<Value> by_device;
    for (std::int64_t device = 0; device < cut.parts(); ++device)
      by_device.push_back(take_part(all, cut.steps_to(device), 1, cut.parts()));
    return cut.all_reduced(concatenate(by_device, 1));
  };
  cut.graph.output("dq", backward.dq());
  cut.graph.output("dk", summed(dk, cut.operands[1]));
  cut.graph.output("dv", summed(dv, cut.operands[2]));
}

// Ring: the sum of dk and dv travels with the keys. This device computes its own whole pair last, while its sum comes
// home.
void ring_grad(Cut& cut, Backward& backward) {
  const Backward::Own own = backward.own();
  Backward::OfKeys coming;
  for (std::int64_t steps = 1; steps < cut.parts(); ++steps) {
    cut.begin_step(steps);
    const Backward::OfKeys met = backward.meet(steps);
    const Backward::OfKeys sum = steps == 1 ? met : Backward::sum(coming, met);
    const Value dk = cut.sent_on(sum.dk);
    coming = {dk, cut.sent_on(sum.dv)};
  }
  const Backward::OfKeys home = Backward::joined(Backward::sum(own.early, backward.across()), own.late);
  const Backward::OfKeys sum = Backward::sum(coming, home);
  cut.graph.output("dq", backward.dq());
  cut.graph.output("dk", cast(sum.dk, cut.operands[1].dtype()));
  cut.graph.output("dv", cast(sum.dv, cut.operands[2].dtype()));
}

}  // namespace

Graph zigzag_attention(const OpCall& local, std::string_view axis, std::int64_t parts) {
  Cut cut(local, "attention", kForward, axis, parts);
  const std::array of_query{0};
  const auto attend = [&](const Chunk& q, const Chunk& k, bool causal) -> Running {
    const Attention a = attention(q.tensors[0], k.tensors[0], k.tensors[1], cut.options(causal, q, k));
    return {cast(a.o, cut.statistic), a.lse};
  };
  cut.begin_step(0);
  const Chunk first = cut.queries(of_query, 0), second = cut.queries(of_query, 1);
  Running early = attend(first, cut.own_keys(0), true);
  Running late = joined(attend(second, cut.own_keys(1), true), attend(second, cut.own_keys(0), false));
  for (std::int64_t steps = 1; steps < parts; ++steps) {
    cut.begin_step(steps);
    const Peer peer = cut.peer(steps);
    late = joined(late, attend(second, cut.early_keys(peer), false));
    const Running either = attend(cut.queries(of_query, peer.half), cut.either_keys(peer), false);
    early = joined(early, {either.o, where_not(peer.behind, either.lse, -kInf)});
    late = joined(late, {either.o, where(peer.behind, either.lse, -kInf)});
  }
  const DType dtype = cut.operands[0].dtype();
  cut.graph.output("o", concatenate(std::array{cast(early.o, dtype), cast(late.o, dtype)}, 1));
  cut.graph.output("lse", concatenate(std::array{early.lse, late.lse}, 2));
  return std::move(cut.graph);
}

Graph zigzag_attention_grad(const OpCall& local, std::string_view axis, std::int64_t parts) {
  Cut cut(local, "attention_grad", kBackward, axis, parts);
  cut.begin_step(0);
  Backward backward(cut);
  cut.ring() ? ring_grad(cut, backward) : gathered_grad(cut, backward);
  return std::move(cut.graph);
}

}  // namespace systole::ops
