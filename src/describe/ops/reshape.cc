// reshape: the same elements in row-major order, as another shape. A view: no byte moves.
//
// Constraints: C1 the attributes give a shape (type_attrs.h). C2 x and y have equally many elements.
// Sharding: the dims of x and y are split into the shortest runs of equal products ([4, 6, 5] → [24, 5]: 4·6 = 24 and
// 5 = 5). In each run the outermost dims, ignoring size 1, are one factor: sharding both over `parts` devices gives
// each device the same elements, if parts divides both sizes. The other dims of a run are replicated.

#include "describe/ir/op.h"
#include "describe/ops/index.h"
#include "describe/ops/list.h"
#include "describe/ops/ops.h"
#include "describe/ops/type_attrs.h"

namespace systole {
namespace {

using ops::at;

std::vector<Type> infer(const OpCall& call) {
  if (call.num_operands() != 1) constraint("reshape_c1", "reshape takes one operand, got {}", call.num_operands());
  const Type& x = call.operand(0);
  const Type y = ops::shaped_as(call.attrs, x.dtype, "reshape_c1");
  if (y.num_elements() != x.num_elements())
    constraint("reshape_c2", "{} has {} elements, {} has {}", to_string(x), x.num_elements(), to_string(y),
               y.num_elements());
  return {y};
}

// The dims of x and y that begin a run. Dims of size 1 belong to no run.
std::vector<std::pair<int, int>> run_heads(const Shape& x, const Shape& y) {
  std::vector<std::pair<int, int>> heads;
  std::size_t i = 0, j = 0;
  auto skip_ones = [](const Shape& shape, std::size_t& k) {
    while (k < shape.size() && shape[k] == 1) ++k;
  };
  for (;;) {
    skip_ones(x, i);
    skip_ones(y, j);
    if (i == x.size() || j == y.size()) return heads;
    heads.emplace_back(static_cast<int>(i), static_cast<int>(j));
    std::int64_t a = x[i++], b = y[j++];
    while (a != b) {
      if (a < b) {
        a *= x[i++];
      } else {
        b *= y[j++];
      }
    }
  }
}

ShardingRule sharding(const OpCall& call) {
  const Shape& x = call.operand(0).shape;
  const Ints& sizes = call.attrs.get_ints("shape");
  ShardingRule rule;
  rule.operands = {std::vector<int>(x.size(), -1)};
  rule.results = {std::vector<int>(sizes.size(), -1)};
  if (call.operand(0).num_elements() == 0) return rule;
  for (const auto& [i, j] : run_heads(x, Shape(sizes.begin(), sizes.end()))) {
    const int factor = static_cast<int>(rule.factors.size());
    rule.factors.push_back({std::string(1, ops::letter(factor)), ShardingRule::Kind::pass});
    at(rule.operands[0], i) = factor;
    at(rule.results[0], j) = factor;
  }
  return rule;
}

}  // namespace

namespace ops {

std::vector<OpDef> reshape_ops() {
  OpDef op;
  op.name = "reshape";
  op.summary = "the same elements in row-major order, as another shape";
  op.signature = "(x: any[...]) -> (y: x's type[shape])";
  op.attrs = shape_attrs();
  op.infer = infer;
  op.gradient = [](GradientCall& call) -> Gradients { return {reshape(*call.cotangent(0), call.operand_type(0))}; };
  op.work = [](const OpCall& call, std::span<const Type> results) { return moves(call.operands, results); };
  op.sharding = sharding;
  op.local_attrs = [](const Attrs& whole, std::span<const Type> local) { return with_shape(whole, local[0].shape); };
  op.reference = [](const ReferenceCall& call) {
    for (std::int64_t i = 0; i < call.results[0].type.num_elements(); ++i)
      copy_element(call.operands[0], i, call.results[0], i);
  };
  op.cheap = true;
  op.view = true;
  op.in_place = {{0, 0}};
  return {op};
}

}  // namespace ops

Value reshape(Value x, const Type& type) {
  if (type.dtype != x.dtype())
    constraint("reshape_c1", "{} from {}: reshape does not convert", to_string(type), to_string(x.type()));
  Attrs attrs;
  ops::set_shape(attrs, type);
  return x.graph->apply("reshape", std::array{x}, std::move(attrs))[0];
}

}  // namespace systole
