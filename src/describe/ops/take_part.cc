// take_part: part `index` of `parts` equal parts along `dim`. It selects a device's shard of a replicated value: the
// index is the device's coordinate on a mesh axis, known when the Program runs.
//
// Constraints: C1 x and an index i64[]. C2 dim is a dim of x, which `parts` ≥ 1 divides.
// An index outside [0, parts) gives zeros. No gradient: it is inserted after differentiation. Sharding: all dims but
// `dim` pass.

#include <algorithm>
#include <array>

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

std::vector<Type> infer(const OpCall& call) {
  if (call.num_operands() != 2 || !(call.operand(1) == Type(DType::i64, {})))
    constraint("take_part_c1", "take_part takes x and an index i64[], got {} operands", call.num_operands());
  Type y = call.operand(0);
  const std::int64_t dim = call.attrs.get_int("dim"), parts = call.attrs.get_int("parts");
  if (dim < 0 || dim >= y.ndim() || parts < 1 || y.size(static_cast<int>(dim)) % parts != 0)
    constraint("take_part_c2", "dim {} of {} in {} parts", dim, to_string(y), parts);
  y.shape[static_cast<std::size_t>(dim)] /= parts;
  return {y};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.operands[0], &y = call.results[0];
  const auto dim = static_cast<std::size_t>(call.attrs.get_int("dim"));
  const std::int64_t index = call.operands[1].integer(0), parts = call.attrs.get_int("parts");
  const std::vector<std::int64_t> strides = strides_of(x.type.shape);
  tally().untouched_bytes += x.type.bytes().count() - y.type.bytes().count();
  if (index >= 0 && index < parts) return ops::copy_strided(x, index * y.type.shape[dim] * strides[dim], strides, y);
  for (std::int64_t i = 0; i < y.type.num_elements(); ++i) y.set(i, Scalar(0));
}

}  // namespace

OpDef ops::take_part_op() {
  OpDef op;
  op.name = "take_part";
  op.summary = "y = part `index` of `parts` equal ones of x along `dim`; zeros when there is no such part";
  op.signature = "(x: any[...], index: i64[]) -> (y: x's type, dim / parts)";
  op.attrs = {{"dim", "int", "that is cut"}, {"parts", "int", "how many there are"}};
  op.infer = infer;
  op.work = [](const OpCall& call, std::span<const Type> results) {
    Work work = moves(call.operands, results);
    work.read = results[0].bytes() + call.operand(1).bytes();
    return work;
  };
  op.sharding = [](const OpCall& call) {
    const auto dim = static_cast<std::size_t>(call.attrs.get_int("dim"));
    const std::string x = ops::letters(call.operand(0).ndim());
    std::string y = x;
    y[dim] = 'Z';
    return sharding_rule(x + ",->" + y, "", std::string{x[dim], 'Z'});
  };
  op.reference = reference;
  return op;
}

Value take_part(Value x, Value index, int dim, std::int64_t parts) {
  const Value operands[] = {x, index};
  return x.graph->apply("take_part", operands, {{"dim", std::int64_t{dim}}, {"parts", parts}})[0];
}

}  // namespace systole
