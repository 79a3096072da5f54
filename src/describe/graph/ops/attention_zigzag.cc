#include "describe/graph/ops/attention_zigzag.h"

#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "describe/graph/ops/attention_pairs.h"
#include "describe/graph/ops/last_dim.h"

namespace systole::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// A chunk of queries or keys, of all that the op takes of them.
struct Chunk {
  std::vector<Value> tensors;  // q, and for the gradient o, lse, g; or k and v
  std::optional<Value> segments;
};

// Another device of the axis, as this one meets it.
struct Peer {
  Value early;   // index of its early chunk among all
  Value behind;  // bool[]: it lies behind this device
  Value half;    // i64[]: which of this device's halves, and of the other's, meet besides: 1 behind, else 0
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
  Value all_reduced(Value x) const { return all_reduce(x, axis_, parts_); }

  // Half of this device's queries: by number, or by an i64[].
  Chunk queries(std::span<const int> which, int half) const {
    return chunk(which, masks_.q_segments, [&](Value x, int dim) {
      const std::int64_t size = x.type().size(dim) / 2;
      return slice_dim(x, dim, half * size, (half + 1) * size);
    });
  }
  Chunk queries(std::span<const int> which, Value half) const {
    return chunk(which, masks_.q_segments, [&](Value x, int dim) { return take_part(x, half, dim, 2); });
  }
  Chunk keys(Value index) const {
    return chunk(std::array{1, 2}, masks_.k_segments,
                 [&](Value x, int dim) { return take_part(x, index, dim, 2 * parts_); });
  }
  Chunk own_keys(int half) const { return keys(add(twice(me_), full_like(me_, half))); }

  // The device `steps` before this one on the axis, round the end.
  Peer peer(std::int64_t steps) const {
    const Value from = sub(me_, full_like(me_, static_cast<double>(steps)));
    const Value behind = compare(from, full_like(from, 0), "lt");
    return {twice(around(from)), behind, select(behind, full_like(me_, 1), full_like(me_, 0))};
  }
  // How many steps before this device `device` lies.
  Value steps_to(std::int64_t device) const { return around(sub(me_, full_like(me_, static_cast<double>(device)))); }

  AttentionOptions options(bool causal, const Chunk& q, const Chunk& k) const {
    AttentionOptions options{causal, scale_, q.segments, k.segments, {}};
    options.value = value_;
    return options;
  }

 private:
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

  // Which part of `size` begins at the offset: counted, for integers are not divided here.
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
  const std::int64_t value_;  // of v's last dim so many are data; 0: all
  Value offset_, me_;
};

Value where(Value flag, Value x, double otherwise) {
  return select(broadcast_scalar(flag, x.type()), x, full_like(x, otherwise));
}
Value where_not(Value flag, Value x, double otherwise) {
  return select(broadcast_scalar(flag, x.type()), full_like(x, otherwise), x);
}

// Of queries, over the keys so far: o in the statistics' type, and lse.
struct Running {
  Value o, lse;
};

// w[b, h, t] as a factor of o[b, t, h, d].
Value along_heads(Value w, Value o) {
  return broadcast(transpose(w, std::array{0, 2, 1}), o.type(), std::array{0, 1, 2});
}

// Over the keys of both. Queries that have seen nothing keep o = 0 and lse = -inf.
Running joined(const Running& a, const Running& b) {
  const Value zero = full_like(a.lse, 0), top = max(a.lse, b.lse);
  const Value shift = select(compare(top, full_like(top, -kInf), "eq"), zero, top);
  const Value of_a = exp(sub(a.lse, shift)), of_b = exp(sub(b.lse, shift)), sum = add(of_a, of_b);
  const Value divisor = select(compare(sum, zero, "eq"), full_like(sum, 1), sum);
  return {add(mul(a.o, along_heads(div(of_a, divisor), a.o)), mul(b.o, along_heads(div(of_b, divisor), b.o))),
          add(shift, log(sum))};
}

}  // namespace

Graph zigzag_attention(const OpCall& local, std::string_view axis, std::int64_t parts) {
  Cut cut(local, "attention", kForward, axis, parts);
  const std::array of_query{0};
  const auto attend = [&](const Chunk& q, const Chunk& k, bool causal) -> Running {
    const Attention a = attention(q.tensors[0], k.tensors[0], k.tensors[1], cut.options(causal, q, k));
    return {cast(a.o, cut.statistic), a.lse};
  };
  const Chunk first = cut.queries(of_query, 0), second = cut.queries(of_query, 1);
  Running early = attend(first, cut.own_keys(0), true);
  Running late = joined(attend(second, cut.own_keys(1), true), attend(second, cut.own_keys(0), false));
  for (std::int64_t steps = 1; steps < parts; ++steps) {
    const Peer peer = cut.peer(steps);
    late = joined(late, attend(second, cut.keys(peer.early), false));
    const Running either = attend(cut.queries(of_query, peer.half), cut.keys(add(peer.early, peer.half)), false);
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
  const std::array of_query{0, 3, 4, 5};
  const auto grad = [&](const Chunk& q, const Chunk& k, bool causal) -> AttentionGrad {
    AttentionGrad d = attention_grad(q.tensors[0], k.tensors[0], k.tensors[1], q.tensors[1], q.tensors[2], q.tensors[3],
                                     cut.options(causal, q, k));
    for (Value* x : {&d.dq, &d.dk, &d.dv}) *x = cast(*x, cut.statistic);
    return d;
  };
  const Chunk first = cut.queries(of_query, 0), second = cut.queries(of_query, 1);
  const AttentionGrad own_early = grad(first, cut.own_keys(0), true), own_late = grad(second, cut.own_keys(1), true),
                      across = grad(second, cut.own_keys(0), false);
  Value early = own_early.dq, late = add(own_late.dq, across.dq);
  // Per device met, in the order of the steps: what this one adds to its two chunks.
  std::vector<Value> dk{concatenate(std::array{add(own_early.dk, across.dk), own_late.dk}, 1)},
      dv{concatenate(std::array{add(own_early.dv, across.dv), own_late.dv}, 1)};
  for (std::int64_t steps = 1; steps < parts; ++steps) {
    const Peer peer = cut.peer(steps);
    const AttentionGrad a = grad(second, cut.keys(peer.early), false);
    const AttentionGrad b = grad(cut.queries(of_query, peer.half), cut.keys(add(peer.early, peer.half)), false);
    late = add(late, add(a.dq, where(peer.behind, b.dq, 0)));
    early = add(early, where_not(peer.behind, b.dq, 0));
    const auto both = [&](Value of_a, Value of_b) {
      return concatenate(std::array{add(of_a, where_not(peer.behind, of_b, 0)), where(peer.behind, of_b, 0)}, 1);
    };
    dk.push_back(both(a.dk, b.dk));
    dv.push_back(both(a.dv, b.dv));
  }
  const auto summed = [&](const std::vector<Value>& by_steps, Value like) {
    const Value all = cast(concatenate(by_steps, 1), like.dtype());
    std::vector<Value> by_device;
    for (std::int64_t device = 0; device < parts; ++device)
      by_device.push_back(take_part(all, cut.steps_to(device), 1, parts));
    return cut.all_reduced(concatenate(by_device, 1));
  };
  cut.graph.output("dq", cast(concatenate(std::array{early, late}, 1), cut.operands[0].dtype()));
  cut.graph.output("dk", summed(dk, cut.operands[1]));
  cut.graph.output("dv", summed(dv, cut.operands[2]));
  return std::move(cut.graph);
}

}  // namespace systole::ops
