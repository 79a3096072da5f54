// Reductions that remove `dims`: reduce_sum, reduce_max, reduce_min; and sum_of_squares over all dims.
//
// With `block` and `layers` sum_of_squares gives [layers, blocks]: x is `layers` equal stretches, and each stretch has
// a sum for every `block` elements in index order; the last block may be shorter. Each block is summed by itself, so
// its bits depend on its elements only.
//
// Sums begin at zero, accumulate in f32 (f64 for f64; integers are exact up to 2^53) and are rounded to the result
// once. reduce_max and reduce_min are NaN where an element is NaN.
//
// Constraints: reduce C1 one operand, `dims` are ascending dims of it. C2 reduce_sum takes numbers, and bools with a
// `dtype`, and its result has a number type; reduce_max and reduce_min take numbers; sum_of_squares takes floats. C3
// reduce_max and reduce_min have at least one element to choose from. C4 `block` and `layers` are at least 1, and
// layers divides the elements.
// Gradients: of a sum, the cotangent for every element; of reduce_max and reduce_min, shared evenly among the elements
// equal to the result; of sum_of_squares, 2 x g (none with `block`).
// Sharding: sums over sharded dims are partial sums. For reduce_max a local rewrite adds an all_reduce max. There is no
// all_reduce min: reduce_min of floats reduces the negated values, reduce_min of integers is replicated. sum_of_squares
// with `block` is replicated.

#include <array>
#include <numeric>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

using ops::at;

DType sum_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// The type without the reduced dims.
Type reduced_type(const OpCall& call) {
  if (call.num_operands() != 1)
    constraint("reduce_c1", "{} takes one operand, got {}", call.op.name, call.num_operands());
  const Type& x = call.operand(0);
  std::int64_t previous = -1;
  for (const std::int64_t dim : call.attrs.get_ints("dims")) {
    if (dim <= previous || dim >= x.ndim()) {
      constraint("reduce_c1", "{} over {} of {}: dims must ascend within it", call.op.name, to_string(call.attrs),
                 to_string(x));
    }
    previous = dim;
  }
  const Ints& dims = call.attrs.get_ints("dims");
  Type y(x.dtype, {});
  for (int dim = 0; dim < x.ndim(); ++dim) {
    if (std::find(dims.begin(), dims.end(), dim) == dims.end()) y.add_dim(x.size(dim), x.name(dim));
  }
  return y;
}

std::vector<Type> infer_sum(const OpCall& call) {
  Type y = reduced_type(call);
  if (call.attrs.find("dtype") != nullptr) y.dtype = call.attrs.get_dtype("dtype");
  if (y.dtype == DType::boolean) constraint("reduce_c2", "reduce_sum of {} to bool", to_string(call.operand(0)));
  return {y};
}

std::vector<Type> infer_choice(const OpCall& call) {
  const Type y = reduced_type(call);
  if (y.dtype == DType::boolean) constraint("reduce_c2", "{} of {}", call.op.name, to_string(call.operand(0)));
  if (call.operand(0).num_elements() == 0 && y.num_elements() > 0) {
    constraint("reduce_c3", "{} of {} chooses among no elements", call.op.name, to_string(call.operand(0)));
  }
  return {y};
}

std::vector<Type> infer_squares(const OpCall& call) {
  if (call.num_operands() != 1)
    constraint("reduce_c1", "sum_of_squares takes one operand, got {}", call.num_operands());
  const Type& x = call.operand(0);
  if (!is_float(x.dtype)) constraint("reduce_c2", "sum_of_squares of {}", to_string(x));
  if (call.attrs.find("block") == nullptr) return {Type(sum_dtype(x.dtype), {})};
  const std::int64_t block = call.attrs.get_int("block"), layers = call.attrs.get_int("layers");
  if (block < 1 || layers < 1 || x.num_elements() % layers != 0)
    constraint("reduce_c4", "sum_of_squares of {} by blocks of {} in {} layers", to_string(x), block, layers);
  return {Type(sum_dtype(x.dtype), {layers, (x.num_elements() / layers + block - 1) / block})};
}

std::vector<int> kept_dims(const Ints& dims, int ndim) {
  std::vector<int> kept;
  for (int dim = 0; dim < ndim; ++dim) {
    if (std::find(dims.begin(), dims.end(), dim) == dims.end()) kept.push_back(dim);
  }
  return kept;
}

// Broadcasts y to x's shape, along the kept dims.
Value spread(Value y, const Type& x, const Ints& dims) {
  return broadcast(y, x.with(y.dtype()), kept_dims(dims, x.ndim()));
}

Gradients sum_gradient(GradientCall& call) {
  const Type& x = call.operand_type(0);
  if (!is_float(x.dtype)) return {std::nullopt};
  return {spread(cast(*call.cotangent(0), x.dtype), x, call.attrs().get_ints("dims"))};
}

Gradients choice_gradient(GradientCall& call) {
  const Ints& dims = call.attrs().get_ints("dims");
  const std::vector<int> over(dims.begin(), dims.end());
  const Value x = call.operand(0), g = *call.cotangent(0);
  if (!is_float(x.dtype())) return {std::nullopt};
  const Value chosen = compare(x, spread(call.result(0), x.type(), dims), "eq");
  const Value zero = full_like(x, 0);
  const Value count = reduce_sum(select(chosen, full_like(x, 1), zero), over);
  return {select(chosen, spread(div(g, count), x.type(), dims), zero)};
}

Gradients squares_gradient(GradientCall& call) {
  if (call.attrs().find("block") != nullptr)
    fail(error(ErrorKind::unsupported, "the gradient of sum_of_squares by blocks does not exist"));
  const Value x = call.operand(0);
  return {mul(scale(x, 2), broadcast_scalar(cast(*call.cotangent(0), x.dtype()), x.type()))};
}

struct Letters {
  std::string all, reduced, kept;
};

Letters letters_of(const OpCall& call) {
  Letters split{ops::letters(call.operand(0).ndim()), "", ""};
  for (const std::int64_t dim : call.attrs.get_ints("dims")) split.reduced += ops::letter(static_cast<int>(dim));
  for (const int dim : kept_dims(call.attrs.get_ints("dims"), call.operand(0).ndim())) split.kept += ops::letter(dim);
  return split;
}

ShardingRule sum_sharding(const OpCall& call) {
  const Letters dims = letters_of(call);
  return sharding_rule(dims.all + "->" + dims.kept, dims.reduced);
}

ShardingRule choice_sharding(const OpCall& call) {
  const Letters dims = letters_of(call);
  const bool local = std::string_view(call.op.name) == "reduce_max" || is_float(call.operand(0).dtype);
  return sharding_rule(dims.all + "->" + dims.kept, "", local ? "" : dims.reduced, local ? dims.reduced : "");
}

Graph choice_rewrite(const OpCall& local, int, std::string_view axis, std::int64_t parts) {
  Graph graph(local.op.name);
  const Value x = graph.input("x", local.operand(0));
  graph.input("offset", Type(DType::i64, {}));
  const Value mine = graph.apply(local.op, std::array{x}, local.attrs)[0];
  const bool largest = std::string_view(local.op.name) == "reduce_max";
  graph.output("y", largest ? all_reduce(mine, axis, parts, "max") : neg(all_reduce(neg(mine), axis, parts, "max")));
  return graph;
}

// Visits each element of x in order, with its index in the result.
template <typename Visit>
void for_each_pair(const ReferenceCall& call, Visit visit) {
  const Type &x = call.operands[0].type, &y = call.results[0].type;
  const std::vector<int> kept = kept_dims(call.attrs.get_ints("dims"), x.ndim());
  const std::vector<std::int64_t> y_strides = strides_of(y.shape);
  std::vector<std::int64_t> strides(x.shape.size(), 0);
  for (std::size_t k = 0; k < kept.size(); ++k) at(strides, kept[k]) = y_strides[k];
  std::int64_t i = 0;
  ops::for_each_index(
      x.shape, [&](const Shape& index) { visit(i++, static_cast<std::size_t>(ops::offset_of(index, strides))); });
}

void reference_sum(const ReferenceCall& call) {
  std::vector<Scalar> sums(static_cast<std::size_t>(call.results[0].type.num_elements()), Scalar(0));
  for_each_pair(call, [&](std::int64_t i, std::size_t k) { sums[k] += call.operands[0].at(i); });
  for (std::size_t k = 0; k < sums.size(); ++k) call.results[0].set(static_cast<std::int64_t>(k), sums[k]);
}

// Largest or smallest element, starting with the first. Copies bit for bit, so that large integers stay exact.
void reference_choice(const ReferenceCall& call, bool largest) {
  const TensorView &x = call.operands[0], &y = call.results[0];
  std::vector<std::int64_t> best(static_cast<std::size_t>(y.type.num_elements()), -1);
  const bool exact = is_integer(x.type.dtype) && x.type.dtype != DType::u64;
  auto better = [&](std::int64_t i, std::int64_t than) {
    if (exact) return largest ? x.integer(i) > x.integer(than) : x.integer(i) < x.integer(than);
    const double a = x.raw(i), b = x.raw(than);
    return std::isnan(a) ? !std::isnan(b) : largest ? a > b : a < b;
  };
  for_each_pair(call, [&](std::int64_t i, std::size_t k) {
    if (best[k] < 0 || better(i, best[k])) best[k] = i;
  });
  for (std::size_t k = 0; k < best.size(); ++k) ops::copy_element(x, best[k], y, static_cast<std::int64_t>(k));
}

void reference_squares(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &y = call.results[0];
  const std::int64_t sums = y.type.num_elements(), layers = y.type.ndim() == 0 ? 1 : y.type.size(0);
  const std::int64_t layer = x.type.num_elements() / layers, blocks = sums / layers;
  const std::int64_t block = y.type.ndim() == 0 ? layer : call.attrs.get_int("block");
  for (std::int64_t k = 0; k < sums; ++k) {
    const std::int64_t end = (k / blocks + 1) * layer, first = k / blocks * layer + k % blocks * block;
    Scalar sum(0);
    for (std::int64_t i = first; i < std::min(end, first + block); ++i) sum += x.at(i) * x.at(i);
    y.set(k, sum);
  }
}

OpDef make_sum() {
  OpDef op;
  op.name = "reduce_sum";
  op.summary = "y = sum of x over `dims`";
  op.signature = "(x: any[...]) -> (y: dtype[x without dims])";
  op.attrs = {{"dims", "ints", "summed, ascending"}, {"dtype", "dtype", "of the result; x's when absent", false}};
  op.infer = infer_sum;
  op.gradient = sum_gradient;
  op.work = [](const OpCall& call, std::span<const Type> results) {
    Work work = moves(call.operands, results);
    work.flops = call.operand(0).num_elements();
    return work;
  };
  op.sharding = sum_sharding;
  op.reference = reference_sum;
  op.precision = PrecisionRule::f32;
  return op;
}

OpDef make_choice(const char* name, const char* summary, bool largest) {
  OpDef op;
  op.name = name;
  op.summary = summary;
  op.signature = "(x: number[...]) -> (y: x's type[x without dims])";
  op.attrs = {{"dims", "ints", "reduced, ascending"}};
  op.infer = infer_choice;
  op.gradient = choice_gradient;
  op.work = [](const OpCall& call, std::span<const Type> results) { return moves(call.operands, results); };
  op.sharding = choice_sharding;
  op.local_rewrite = choice_rewrite;
  op.reference = [largest](const ReferenceCall& call) { reference_choice(call, largest); };
  return op;
}

OpDef make_squares() {
  OpDef op;
  op.name = "sum_of_squares";
  op.summary = "y = sum of x^2 over all elements, or over each block of them";
  op.signature = "(x: float[...]) -> (y: f32[], f64[] of f64; f32[layers, blocks] with `block`)";
  op.attrs = {{"block", "int", "elements of a block", false}, {"layers", "int", "equal stretches of x", false}};
  op.infer = infer_squares;
  op.gradient = squares_gradient;
  op.work = [](const OpCall& call, std::span<const Type> results) {
    Work work = moves(call.operands, results);
    work.flops = 2 * call.operand(0).num_elements();
    return work;
  };
  op.sharding = [](const OpCall& call) {
    const std::string dims = ops::letters(call.operand(0).ndim());
    if (call.attrs.find("block") != nullptr) return sharding_rule(dims + "->..", "", dims);
    return sharding_rule(dims + "->", dims);
  };
  op.reference = reference_squares;
  op.precision = PrecisionRule::f32;
  return op;
}

Value choose(const char* op, Value x, std::span<const int> dims) {
  return x.graph->apply(op, std::array{x}, {{"dims", Ints(dims.begin(), dims.end())}})[0];
}

}  // namespace

namespace ops {

std::vector<OpDef> reduce_ops() {
  return {make_sum(), make_choice("reduce_max", "y = largest of x over `dims`; NaN if any is", true),
          make_choice("reduce_min", "y = smallest of x over `dims`; NaN if any is", false), make_squares()};
}

}  // namespace ops

Value reduce_sum(Value x, std::span<const int> dims, std::optional<DType> dtype) {
  Attrs attrs{{"dims", Ints(dims.begin(), dims.end())}};
  if (dtype && *dtype != x.dtype()) attrs.set("dtype", std::string(name_of(*dtype)));
  return x.graph->apply("reduce_sum", std::array{x}, std::move(attrs))[0];
}

Value reduce_max(Value x, std::span<const int> dims) { return choose("reduce_max", x, dims); }
Value reduce_min(Value x, std::span<const int> dims) { return choose("reduce_min", x, dims); }

Value sum_all(Value x) {
  std::vector<int> dims(x.type().shape.size());
  std::iota(dims.begin(), dims.end(), 0);
  return reduce_sum(x, dims, sum_dtype(x.dtype()));
}

Value sum_of_squares(Value x) { return x.graph->apply("sum_of_squares", std::array{x})[0]; }

Value global_norm(std::span<const Value> xs) {
  if (xs.empty()) fail(error(ErrorKind::invalid, "global_norm of no tensors"));
  std::optional<Value> sum;
  for (const Value& x : xs) {
    const Value square = sum_of_squares(x);
    if (!sum) {
      sum = square;
    } else {
      const DType wider = sum->dtype() == DType::f64 ? DType::f64 : square.dtype();
      sum = add(cast(*sum, wider), cast(square, wider));
    }
  }
  return sqrt(*sum);
}

}  // namespace systole
