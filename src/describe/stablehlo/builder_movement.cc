// Shape and movement ops, sums, products.

#include <algorithm>
#include <array>
#include <limits>

#include "describe/stablehlo/builder.h"
#include "ground/base/error.h"

namespace systole::stablehlo {
namespace {

template <typename List>
std::string array_text(const List& list) {
  std::string text = "array<i64";
  bool first = true;
  for (const auto value : list) {
    text += (first ? ": " : ", ") + std::to_string(value);
    first = false;
  }
  return text + '>';
}

template <typename List>
std::string list_text(const List& list) {
  std::string text = "[";
  for (const auto value : list) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + ']';
}

std::vector<Ssa> with_starts(std::vector<Ssa> operands, std::span<const Ssa> start) {
  operands.insert(operands.end(), start.begin(), start.end());
  return operands;
}

Type same_names(const Type& x, const Shape& shape) {
  Type type = x;
  type.shape = shape;
  return type;
}

// The neutral element of an op.
Ssa neutral(Builder& b, std::string_view op, DType dtype) {
  const Type scalar(dtype, {});
  if (op == "add" || op == "or") return b.constant(scalar, 0);
  if (op == "and" || op == "multiply") return b.constant(scalar, 1);
  CHECK(op == "maximum" || op == "minimum", "no neutral element of '{}' is known", op);
  const bool low = op == "maximum";
  if (is_float(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return b.constant(scalar, low ? -infinity : infinity);
  }
  const bool is_signed = dtype == DType::i8 || dtype == DType::i32 || dtype == DType::i64;
  const std::uint64_t sign = std::uint64_t{1} << (8 * size_of(dtype) - 1);
  return b.integer(scalar, is_signed ? (low ? sign : sign - 1) : (low ? 0 : ~std::uint64_t{0}));
}

}  // namespace

Ssa Builder::broadcast(const Ssa& x, const Type& type, std::span<const int> dims) {
  CHECK(x.type.dtype == type.dtype && static_cast<int>(dims.size()) == x.type.ndim(), "broadcast of {} to {}",
        to_string(x.type), to_string(type));
  return line("broadcast_in_dim", std::array{x}, "broadcast_dimensions = " + array_text(dims), type);
}

Ssa Builder::splat(const Ssa& scalar, const Type& like) {
  if (like.ndim() == 0) return scalar;
  return broadcast(scalar, like.with(scalar.type.dtype), {});
}

Ssa Builder::reshape(const Ssa& x, const Shape& shape) {
  if (x.type.shape == shape) return x;
  CHECK(num_elements(shape) == x.type.num_elements(), "reshape of {} to {}", to_string(x.type),
        systole::to_string(shape));
  return line("reshape", std::array{x}, "", Type(x.type.dtype, shape));
}

Ssa Builder::transpose(const Ssa& x, std::span<const int> permutation) {
  Shape shape;
  for (const int dim : permutation) shape.push_back(x.type.size(dim));
  if (std::is_sorted(permutation.begin(), permutation.end())) return x;
  return line("transpose", std::array{x}, "permutation = " + array_text(permutation), Type(x.type.dtype, shape));
}

Ssa Builder::slice(const Ssa& x, std::span<const std::int64_t> start, std::span<const std::int64_t> limit) {
  Shape shape;
  for (std::size_t d = 0; d < start.size(); ++d) shape.push_back(limit[d] - start[d]);
  const std::vector<std::int64_t> strides(start.size(), 1);
  return line("slice", std::array{x},
              fmt::format("start_indices = {}, limit_indices = {}, strides = {}", array_text(start), array_text(limit),
                          array_text(strides)),
              same_names(x.type, shape));
}

Ssa Builder::dynamic_slice(const Ssa& x, std::span<const Ssa> start, const Shape& sizes) {
  return line("dynamic_slice", with_starts({x}, start), "slice_sizes = " + array_text(sizes),
              same_names(x.type, sizes));
}

Ssa Builder::dynamic_update(const Ssa& x, const Ssa& part, std::span<const Ssa> start) {
  return line("dynamic_update_slice", with_starts({x, part}, start), "", x.type);
}

Ssa Builder::concatenate(std::span<const Ssa> parts, int dim) {
  Shape shape = parts[0].type.shape;
  const auto d = static_cast<std::size_t>(dim);
  shape[d] = 0;
  for (const Ssa& part : parts) shape[d] += part.type.shape[d];
  return line("concatenate", parts, fmt::format("dimension = {} : i64", dim), same_names(parts[0].type, shape));
}

Ssa Builder::pad(const Ssa& x, const Ssa& value, std::span<const std::int64_t> low,
                 std::span<const std::int64_t> high) {
  Shape shape = x.type.shape;
  for (std::size_t d = 0; d < shape.size(); ++d) shape[d] += low[d] + high[d];
  const std::vector<std::int64_t> interior(shape.size(), 0);
  return line("pad", std::array{x, value},
              fmt::format("edge_padding_low = {}, edge_padding_high = {}, interior_padding = {}", array_text(low),
                          array_text(high), array_text(interior)),
              same_names(x.type, shape));
}

Ssa Builder::reduce(std::string_view op, const Ssa& x, std::span<const int> dims) {
  Type result(x.type.dtype, {});
  for (int d = 0; d < x.type.ndim(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) result.add_dim(x.type.size(d), "");
  }
  const std::array operands{x, neutral(*this, op, x.type.dtype)};
  Ssa made{fresh(), result};
  begin(made.name, "reduce", operands);
  combiner(op, x.type.dtype);
  end("dimensions = " + array_text(dims), operands, std::array{result});
  return made;
}

Ssa Builder::dot(const Ssa& a, const Ssa& b, const DotDims& dims, DType dtype) {
  CHECK(a.type.dtype == b.type.dtype && dims.a_batch.size() == dims.b_batch.size() &&
            dims.a_contract.size() == dims.b_contract.size(),
        "dot of {} and {}", to_string(a.type), to_string(b.type));
  if (numbering_->wide_products && a.type.dtype != dtype) return dot(convert(a, dtype), convert(b, dtype), dims, dtype);
  Shape shape;
  for (const int d : dims.a_batch) shape.push_back(a.type.size(d));
  const auto add_free = [&](const Type& type, const std::vector<int>& batch, const std::vector<int>& contract) {
    for (int d = 0; d < type.ndim(); ++d) {
      if (std::find(batch.begin(), batch.end(), d) == batch.end() &&
          std::find(contract.begin(), contract.end(), d) == contract.end())
        shape.push_back(type.size(d));
    }
  };
  add_free(a.type, dims.a_batch, dims.a_contract);
  add_free(b.type, dims.b_batch, dims.b_contract);
  // Narrow operands are multiplied exactly anyway; for f32 a matrix unit may drop bits by default.
  const char* precision = size_of(a.type.dtype) >= 4 ? "HIGHEST" : "DEFAULT";
  return line("dot_general", std::array{a, b},
              fmt::format("dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {}, "
                          "rhs_batching_dimensions = {}, lhs_contracting_dimensions = {}, rhs_contracting_dimensions = "
                          "{}>, precision_config = [#stablehlo<precision {}>, #stablehlo<precision {}>]",
                          list_text(dims.a_batch), list_text(dims.b_batch), list_text(dims.a_contract),
                          list_text(dims.b_contract), precision, precision),
              Type(dtype, shape));
}

Ssa Builder::gather_rows(const Ssa& table, const Ssa& ids) {
  Type result = ids.type.with(table.type.dtype);
  const int ndim = ids.type.ndim();
  result.add_dim(table.type.size(1), table.type.name(1));
  return line("gather", std::array{table, ids},
              fmt::format("dimension_numbers = #stablehlo.gather<offset_dims = [{0}], collapsed_slice_dims = [0], "
                          "start_index_map = [0], index_vector_dim = {0}>, slice_sizes = array<i64: 1, {1}>, "
                          "indices_are_sorted = false",
                          ndim, table.type.size(1)),
              result);
}

Ssa Builder::scatter_add_rows(const Ssa& into, const Ssa& ids, const Ssa& rows) {
  return scatter("add", into, ids, rows);
}

Ssa Builder::scatter_rows(const Ssa& into, const Ssa& ids, const Ssa& rows) { return scatter("", into, ids, rows); }

Ssa Builder::scatter(std::string_view op, const Ssa& into, const Ssa& ids, const Ssa& rows) {
  CHECK(into.type.dtype == rows.type.dtype && rows.type.ndim() == ids.type.ndim() + 1, "rows {} at {} into {}",
        to_string(rows.type), to_string(ids.type), to_string(into.type));
  const std::array operands{into, ids, rows};
  Ssa made{fresh(), into.type};
  begin(made.name, "scatter", operands);
  combiner(op, into.type.dtype);
  end(fmt::format("scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [{0}], inserted_window_dims = "
                  "[0], scatter_dims_to_operand_dims = [0], index_vector_dim = {0}>, indices_are_sorted = false, "
                  "unique_indices = false",
                  ids.type.ndim()),
      operands, std::array{into.type});
  return made;
}

}  // namespace systole::stablehlo
