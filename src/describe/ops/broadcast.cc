// broadcast: repeats x along new dims. Dim k of x is dim dims[k] of y; the other dims of y are new.
//
// Constraints: C1 the attributes give a shape (type_attrs.h). C2 dims has one ascending entry per dim of x, each a dim
// of y of the same size; no dim is stretched, not even size 1.
// The gradient sums over the new dims.

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"
#include "describe/ops/type_attrs.h"

namespace systole {
namespace {

using ops::at;

std::vector<Type> infer(const OpCall& call) {
  if (call.num_operands() != 1) constraint("broadcast_c1", "broadcast takes one operand, got {}", call.num_operands());
  const Type& x = call.operand(0);
  const Type y = ops::shaped_as(call.attrs, x.dtype, "broadcast_c1");
  const Ints& dims = call.attrs.get_ints("dims");
  if (static_cast<int>(dims.size()) != x.ndim())
    constraint("broadcast_c2", "{} dims for {}", dims.size(), to_string(x));
  std::int64_t previous = -1;
  for (int k = 0; k < x.ndim(); ++k) {
    const std::int64_t dim = at(dims, k);
    if (dim <= previous || dim >= y.ndim()) {
      constraint("broadcast_c2", "dims {} must ascend within {}", to_string(Attr(dims)), to_string(y));
    }
    if (y.size(static_cast<int>(dim)) != x.size(k)) {
      constraint("broadcast_c2", "dim {} of {} on dim {} of {}", k, to_string(x), dim, to_string(y));
    }
    previous = dim;
  }
  return {y};
}

Gradients gradient(GradientCall& call) {
  const Ints& dims = call.attrs().get_ints("dims");
  std::vector<int> fresh;
  std::size_t next = 0;
  for (int dim = 0; dim < call.result_type(0).ndim(); ++dim) {
    if (next < dims.size() && dims[next] == dim) {
      ++next;
    } else {
      fresh.push_back(dim);
    }
  }
  const Value g = *call.cotangent(0);
  return {fresh.empty() ? g : reduce_sum(g, fresh)};
}

ShardingRule sharding(const OpCall& call) {
  const std::string y = ops::letters(static_cast<int>(call.attrs.get_ints("shape").size()));
  std::string x;
  for (const std::int64_t dim : call.attrs.get_ints("dims")) x += ops::letter(static_cast<int>(dim));
  return sharding_rule(x + "->" + y);
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &y = call.results[0];
  const Ints& dims = call.attrs.get_ints("dims");
  const std::vector<std::int64_t> x_strides = strides_of(x.type.shape);
  std::vector<std::int64_t> strides(y.type.shape.size(), 0);
  for (int k = 0; k < x.type.ndim(); ++k) at(strides, static_cast<int>(at(dims, k))) = at(x_strides, k);
  ops::copy_strided(x, 0, strides, y);
}

}  // namespace

namespace ops {

std::vector<OpDef> broadcast_ops() {
  OpDef op;
  op.name = "broadcast";
  op.summary = "y[i…] = x[those i that x has]";
  op.signature = "(x: any[...]) -> (y: x's type[shape])";
  op.attrs = shape_attrs();
  op.attrs.push_back({"dims", "ints", "where each dim of x lies in y, ascending"});
  op.infer = infer;
  op.gradient = gradient;
  op.work = [](const OpCall& call, std::span<const Type> results) { return moves(call.operands, results); };
  op.sharding = sharding;
  op.local_attrs = [](const Attrs& whole, std::span<const Type> local) { return with_shape(whole, local[0].shape); };
  op.reference = reference;
  op.cheap = true;
  return {op};
}

}  // namespace ops

Value broadcast(Value x, const Type& type, std::span<const int> dims) {
  if (type.dtype != x.dtype())
    constraint("broadcast_c1", "{} from {}: broadcast does not convert", to_string(type), to_string(x.type()));
  Attrs attrs{{"dims", Ints(dims.begin(), dims.end())}};
  ops::set_shape(attrs, type);
  return x.graph->apply("broadcast", std::array{x}, std::move(attrs))[0];
}

Value broadcast_scalar(Value x, const Type& like) { return broadcast(x, like.with(x.dtype()), {}); }

Value broadcast_last(Value x, const Type& like) {
  const int last[] = {like.ndim() - 1};
  return broadcast(x, like.with(x.dtype()), last);
}

}  // namespace systole
