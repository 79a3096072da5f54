// Sums, extrema and products. Sums are accumulated in f32 (f64 for f64), integer sums in i64, and rounded to the result
// once.

#include <algorithm>
#include <array>
#include <numeric>

#include "describe/ir/op.h"
#include "describe/stablehlo/arithmetic.h"
#include "describe/stablehlo/lower_op.h"

namespace systole::stablehlo {
namespace {

using Results = std::vector<Ssa>;

std::vector<int> reduced_dims(const NodeCall& call) {
  const Ints& dims = call.node.attrs.get_ints("dims");
  return {dims.begin(), dims.end()};
}

DType sum_type(const Type& x) {
  if (is_float(x.dtype)) return wide(x.dtype);
  if (x.dtype == DType::u64) return DType::u64;
  return x.dtype == DType::boolean && x.num_elements() < (std::int64_t{1} << 31) ? DType::i32 : DType::i64;
}

Results lower_sum(Builder& b, const NodeCall& call) {
  const Ssa& x = call.operands[0];
  const Ssa sum = b.reduce("add", b.convert(x, sum_type(x.type)), reduced_dims(call));
  return {cast_to(b, sum, call.results[0].dtype)};
}

Results lower_max(Builder& b, const NodeCall& call) {
  return {b.reduce("maximum", call.operands[0], reduced_dims(call))};
}

Results lower_min(Builder& b, const NodeCall& call) {
  return {b.reduce("minimum", call.operands[0], reduced_dims(call))};
}

Results lower_sum_of_squares(Builder& b, const NodeCall& call) {
  const Ssa x = b.convert(call.operands[0], wide(call.operands[0].type.dtype));
  const Ssa squares = b.binary("multiply", x, x);
  const Type& y = call.results[0];
  if (y.ndim() == 0) {
    std::vector<int> all(x.type.shape.size());
    std::iota(all.begin(), all.end(), 0);
    return {b.reduce("add", squares, all)};
  }
  const std::int64_t layers = y.size(0), blocks = y.size(1), block = call.node.attrs.get_int("block");
  const std::int64_t layer = x.type.num_elements() / layers, behind = blocks * block - layer;
  Ssa rows = b.reshape(squares, {layers, layer});
  if (behind > 0)
    rows = b.pad(rows, b.constant(Type(x.type.dtype, {}), 0), std::array<std::int64_t, 2>{0, 0},
                 std::array{std::int64_t{0}, behind});
  return {b.reduce("add", b.reshape(rows, {layers, blocks, block}), std::array{2})};
}

// "bse,ehd->bshd": a letter in both operands and the result is a batch dim; in both operands only, it is contracted.
Results lower_contract(Builder& b, const NodeCall& call) {
  const Ssa &left = call.operands[0], &right = call.operands[1];
  const std::string& spec = call.node.attrs.get_string("spec");
  const std::size_t comma = spec.find(','), arrow = spec.find("->");
  const std::string a = spec.substr(0, comma), c = spec.substr(comma + 1, arrow - comma - 1),
                    y = spec.substr(arrow + 2);
  Builder::DotDims dims;
  std::string made, kept_a, kept_c;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::size_t j = c.find(a[i]);
    if (j == std::string::npos) {
      kept_a += a[i];
    } else {
      const bool batch = y.find(a[i]) != std::string::npos;
      (batch ? dims.a_batch : dims.a_contract).push_back(static_cast<int>(i));
      (batch ? dims.b_batch : dims.b_contract).push_back(static_cast<int>(j));
      if (batch) made += a[i];
    }
  }
  for (const char letter : c) {
    if (a.find(letter) == std::string::npos) kept_c += letter;
  }
  made += kept_a + kept_c;
  const Ssa product = b.dot(left, right, dims, wide(left.type.dtype));
  std::vector<int> permutation;
  for (const char letter : y) permutation.push_back(static_cast<int>(made.find(letter)));
  return {b.transpose(b.convert(product, call.results[0].dtype), permutation)};
}

}  // namespace

std::vector<OpLowering> reduce_lowerings() {
  return {{"reduce_sum", lower_sum},
          {"reduce_max", lower_max},
          {"reduce_min", lower_min},
          {"sum_of_squares", lower_sum_of_squares},
          {"contract", lower_contract}};
}

}  // namespace systole::stablehlo
