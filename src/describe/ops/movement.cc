// Ops that move elements unchanged: transpose, slice, concatenate, pad, copy. cache.cc has those of a decoder.
//
//   transpose    dim i of y is dim perm[i] of x
//   slice        y = x[start : limit], stride 1
//   concatenate  operands one after the other along `dim`
//   pad          `low` and `high` elements of `value` before and after each dim
//   copy         the same values in a buffer of its own
//
// Constraints: transpose C1 perm is a permutation of the dims. slice C1 0 ≤ start ≤ limit ≤ size, one each per dim.
// concatenate C1 at least one operand, `dim` is a dim. C2 operands differ in `dim` only. pad C1 one low and high per
// dim, none negative. C2 x's type holds the value. copy C1 one operand.
// Gradients: transpose by its inverse, slice by pad, pad by slice, concatenate by slices.
// Sharding: dims that are moved whole pass; sliced, padded and concatenated dims are replicated.

#include <algorithm>
#include <array>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

using ops::at;

Work only_moves(const OpCall& call, std::span<const Type> results) { return moves(call.operands, results); }

// The type of the only operand. Errors: Failure(invalid) with `label`.
const Type& single(const OpCall& call, const char* label) {
  if (call.num_operands() != 1) constraint(label, "{} takes one operand, got {}", call.op.name, call.num_operands());
  return call.operand(0);
}

// A rule from x to y: dim i of both is one passing factor, or two replicated factors where whole(i).
template <typename Whole>
ShardingRule dim_by_dim(int ndim, Whole whole) {
  std::string x, y, replicated;
  for (int dim = 0; dim < ndim; ++dim) {
    x += ops::letter(dim);
    y += whole(dim) ? static_cast<char>('A' + dim) : ops::letter(dim);
    if (whole(dim)) replicated += {x.back(), y.back()};
  }
  return sharding_rule(x + "->" + y, "", replicated);
}

// --- transpose

std::vector<Type> infer_transpose(const OpCall& call) {
  const Type& x = single(call, "transpose_c1");
  const Ints& perm = call.attrs.get_ints("perm");
  Ints sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<std::int64_t>(i))
      constraint("transpose_c1", "{} is not a permutation", to_string(Attr(perm)));
  }
  if (static_cast<int>(perm.size()) != x.ndim())
    constraint("transpose_c1", "{} permutes {} dims, not those of {}", to_string(Attr(perm)), perm.size(),
               to_string(x));
  Type y(x.dtype, {});
  for (const std::int64_t dim : perm) y.add_dim(x.size(static_cast<int>(dim)), x.name(static_cast<int>(dim)));
  return {y};
}

OpDef make_transpose() {
  OpDef op;
  op.name = "transpose";
  op.summary = "dim i of y is dim perm[i] of x";
  op.signature = "(x: any[...]) -> (y: x's type, dims permuted)";
  op.attrs = {{"perm", "ints", "for each dim of y, the dim of x"}};
  op.infer = infer_transpose;
  op.gradient = [](GradientCall& call) -> Gradients {
    const Ints& perm = call.attrs().get_ints("perm");
    std::vector<int> inverse(perm.size());
    for (std::size_t i = 0; i < perm.size(); ++i) inverse[static_cast<std::size_t>(perm[i])] = static_cast<int>(i);
    return {transpose(*call.cotangent(0), inverse)};
  };
  op.work = only_moves;
  op.sharding = [](const OpCall& call) {
    std::string y;
    for (const std::int64_t dim : call.attrs.get_ints("perm")) y += ops::letter(static_cast<int>(dim));
    return sharding_rule(ops::letters(call.operand(0).ndim()) + "->" + y);
  };
  op.reference = [](const ReferenceCall& call) {
    const std::vector<std::int64_t> own = strides_of(call.operands[0].type.shape);
    std::vector<std::int64_t> strides;
    for (const std::int64_t dim : call.attrs.get_ints("perm")) strides.push_back(own[static_cast<std::size_t>(dim)]);
    ops::copy_strided(call.operands[0], 0, strides, call.results[0]);
  };
  op.cheap = true;
  return op;
}

// --- slice

std::vector<Type> infer_slice(const OpCall& call) {
  const Type& x = single(call, "slice_c1");
  const Ints &start = call.attrs.get_ints("start"), &limit = call.attrs.get_ints("limit");
  if (start.size() != x.shape.size() || limit.size() != x.shape.size()) {
    constraint("slice_c1", "{} of {}: one start and one limit per dim", to_string(call.attrs), to_string(x));
  }
  Type y = x;
  for (std::size_t i = 0; i < start.size(); ++i) {
    if (start[i] < 0 || start[i] > limit[i] || limit[i] > x.shape[i]) {
      constraint("slice_c1", "[{}, {}) of dim {} of {}", start[i], limit[i], i, to_string(x));
    }
    y.shape[i] = limit[i] - start[i];
  }
  return {y};
}

OpDef make_slice() {
  OpDef op;
  op.name = "slice";
  op.summary = "y = x[start : limit], stride 1";
  op.signature = "(x: any[...]) -> (y: x's type[limit - start])";
  op.attrs = {{"start", "ints", "first index of each dim"}, {"limit", "ints", "index after the last of each dim"}};
  op.infer = infer_slice;
  op.gradient = [](GradientCall& call) -> Gradients {
    const Ints& limit = call.attrs().get_ints("limit");
    Ints high(call.operand_type(0).shape.begin(), call.operand_type(0).shape.end());
    for (std::size_t i = 0; i < high.size(); ++i) high[i] -= limit[i];
    return {pad(*call.cotangent(0), call.attrs().get_ints("start"), high, 0)};
  };
  op.work = only_moves;
  op.sharding = [](const OpCall& call) {
    return dim_by_dim(call.operand(0).ndim(), [&](int dim) {
      return at(call.attrs.get_ints("start"), dim) != 0 ||
             at(call.attrs.get_ints("limit"), dim) != call.operand(0).size(dim);
    });
  };
  op.local_attrs = [](const Attrs& whole, std::span<const Type> local) {
    Ints limit = whole.get_ints("start");
    for (std::size_t i = 0; i < limit.size(); ++i) limit[i] += local[0].shape[i];
    Attrs attrs = whole;
    attrs.set("limit", limit);
    return attrs;
  };
  op.reference = [](const ReferenceCall& call) {
    const std::vector<std::int64_t> strides = strides_of(call.operands[0].type.shape);
    const Ints& start = call.attrs.get_ints("start");
    ops::copy_strided(call.operands[0], ops::offset_of(Shape(start.begin(), start.end()), strides), strides,
                      call.results[0]);
  };
  op.cheap = true;
  return op;
}

// --- concatenate

std::vector<Type> infer_concatenate(const OpCall& call) {
  if (call.num_operands() == 0) constraint("concatenate_c1", "concatenate of no parts");
  const std::int64_t dim = call.attrs.get_int("dim");
  Type y = call.operand(0);
  if (dim < 0 || dim >= y.ndim()) constraint("concatenate_c1", "dim {} of {}", dim, to_string(y));
  const std::size_t along = static_cast<std::size_t>(dim);
  for (int i = 1; i < call.num_operands(); ++i) {
    Type part = call.operand(i);
    if (part.ndim() == y.ndim()) part.shape[along] = y.shape[along];
    if (!(part == y))
      constraint("concatenate_c2", "{} after {} along dim {}", to_string(call.operand(i)), to_string(call.operand(0)),
                 dim);
    y.shape[along] += call.operand(i).shape[along];
  }
  return {y};
}

OpDef make_concatenate() {
  OpDef op;
  op.name = "concatenate";
  op.summary = "the parts one after the other along `dim`";
  op.signature = "(part: any[...], ...) -> (y: the parts' type)";
  op.attrs = {{"dim", "int", "along which they are joined"}};
  op.infer = infer_concatenate;
  op.gradient = [](GradientCall& call) {
    const int dim = static_cast<int>(call.attrs().get_int("dim"));
    Gradients d;
    std::int64_t start = 0;
    for (int i = 0; i < call.num_operands(); ++i) {
      const std::int64_t limit = start + call.operand_type(i).size(dim);
      d.push_back(call.needs(i) ? std::optional(slice_dim(*call.cotangent(0), dim, start, limit)) : std::nullopt);
      start = limit;
    }
    return d;
  };
  op.work = only_moves;
  op.sharding = [](const OpCall& call) {
    ShardingRule rule = sharding_rule("->" + ops::letters(call.operand(0).ndim()));
    const int dim = static_cast<int>(call.attrs.get_int("dim"));
    at(rule.factors, dim).kind = ShardingRule::Kind::replicated;
    rule.operands.clear();
    for (int i = 0; i < call.num_operands(); ++i) {  // sizes along `dim` differ: factors of their own
      rule.operands.push_back(rule.results[0]);
      at(rule.operands.back(), dim) = static_cast<int>(rule.factors.size());
      rule.factors.push_back({"part" + std::to_string(i), ShardingRule::Kind::replicated});
    }
    return rule;
  };
  op.reference = [](const ReferenceCall& call) {
    const std::size_t dim = static_cast<std::size_t>(call.attrs.get_int("dim"));
    const TensorView& y = call.results[0];
    const std::vector<std::int64_t> strides = strides_of(y.type.shape);
    std::int64_t base = 0;
    for (const TensorView& part : call.operands) {
      std::int64_t i = 0;
      ops::for_each_index(part.type.shape, [&](const Shape& index) {
        ops::copy_element(part, i++, y, base + ops::offset_of(index, strides));
      });
      base += part.type.shape[dim] * strides[dim];
    }
  };
  return op;
}

// --- pad

std::vector<Type> infer_pad(const OpCall& call) {
  const Type& x = single(call, "pad_c1");
  const Ints &low = call.attrs.get_ints("low"), &high = call.attrs.get_ints("high");
  if (low.size() != x.shape.size() || high.size() != x.shape.size())
    constraint("pad_c1", "{} of {}: one low and one high per dim", to_string(call.attrs), to_string(x));
  Type y = x;
  for (std::size_t i = 0; i < low.size(); ++i) {
    if (low[i] < 0 || high[i] < 0) constraint("pad_c1", "{} before and {} after dim {}: negative", low[i], high[i], i);
    y.shape[i] += low[i] + high[i];
  }
  const double value = call.attrs.get_double("value");
  if (!is_float(x.dtype) && rounded(x.dtype, value) != value)
    constraint("pad_c2", "{} is not a value of {}", value, name_of(x.dtype));
  return {y};
}

OpDef make_pad() {
  OpDef op;
  op.name = "pad";
  op.summary = "x with `value` around it";
  op.signature = "(x: any[...]) -> (y: x's type[low + size + high])";
  op.attrs = {{"low", "ints", "elements before each dim"},
              {"high", "ints", "elements after each dim"},
              {"value", "double", "of the new elements"}};
  op.infer = infer_pad;
  op.gradient = [](GradientCall& call) -> Gradients {
    const Ints& low = call.attrs().get_ints("low");
    Ints limit = low;
    for (std::size_t i = 0; i < limit.size(); ++i) limit[i] += call.operand_type(0).shape[i];
    return {slice(*call.cotangent(0), low, limit)};
  };
  op.work = only_moves;
  op.sharding = [](const OpCall& call) {
    return dim_by_dim(call.operand(0).ndim(), [&](int dim) {
      return at(call.attrs.get_ints("low"), dim) != 0 || at(call.attrs.get_ints("high"), dim) != 0;
    });
  };
  op.reference = [](const ReferenceCall& call) {
    const TensorView &x = call.operands[0], &y = call.results[0];
    const Scalar value(call.attrs.get_double("value"));
    for (std::int64_t i = 0; i < y.type.num_elements(); ++i) y.set(i, value);
    const std::vector<std::int64_t> strides = strides_of(y.type.shape);
    const Ints& low = call.attrs.get_ints("low");
    const std::int64_t base = ops::offset_of(Shape(low.begin(), low.end()), strides);
    std::int64_t i = 0;
    ops::for_each_index(
        x.type.shape, [&](const Shape& index) { ops::copy_element(x, i++, y, base + ops::offset_of(index, strides)); });
  };
  return op;
}

OpDef make_copy() {
  OpDef op;
  op.name = "copy";
  op.summary = "y = x in bytes of its own";
  op.signature = "(x: any[...]) -> (y: like x)";
  op.infer = [](const OpCall& call) { return std::vector<Type>{single(call, "copy_c1")}; };
  op.gradient = [](GradientCall& call) -> Gradients { return {*call.cotangent(0)}; };
  op.work = only_moves;
  op.sharding = [](const OpCall& call) { return dim_by_dim(call.operand(0).ndim(), [](int) { return false; }); };
  op.reference = [](const ReferenceCall& call) {
    for (std::int64_t i = 0; i < call.results[0].type.num_elements(); ++i)
      ops::copy_element(call.operands[0], i, call.results[0], i);
  };
  return op;
}

}  // namespace

namespace ops {

std::vector<OpDef> movement_ops() {
  return {make_transpose(), make_slice(), make_concatenate(), make_pad(), make_copy()};
}

}  // namespace ops

Value transpose(Value x, std::span<const int> permutation) {
  return x.graph->apply("transpose", std::array{x}, {{"perm", Ints(permutation.begin(), permutation.end())}})[0];
}

Value slice(Value x, const Ints& start, const Ints& limit) {
  return x.graph->apply("slice", std::array{x}, {{"start", start}, {"limit", limit}})[0];
}

Value slice_dim(Value x, int dim, std::int64_t start, std::int64_t limit) {
  if (dim < 0 || dim >= x.type().ndim()) constraint("slice_c1", "dim {} of {}", dim, to_string(x.type()));
  Ints starts(x.type().shape.size(), 0), limits(x.type().shape.begin(), x.type().shape.end());
  at(starts, dim) = start;
  at(limits, dim) = limit;
  return slice(x, starts, limits);
}

Value concatenate(std::span<const Value> parts, int dim) {
  if (parts.empty()) constraint("concatenate_c1", "concatenate of no parts");
  return parts[0].graph->apply("concatenate", parts, {{"dim", std::int64_t{dim}}})[0];
}

Value pad(Value x, const Ints& low, const Ints& high, double value) {
  return x.graph->apply("pad", std::array{x}, {{"low", low}, {"high", high}, {"value", value}})[0];
}

Value copy(Value x) { return x.graph->apply("copy", std::array{x})[0]; }

}  // namespace systole
