#pragma once
// Writes StableHLO as text: one line per operation, in MLIR's generic form, which every version of StableHLO reads and
// https://github.com/openxla/stablehlo/blob/main/docs/spec.md documents.
//
//   Builder b(text);
//   Ssa sum = b.binary("add", x, y);       // %2 = "stablehlo.add"(%0, %1) : (tensor<3xf32>, …) -> tensor<3xf32>
//
// A Builder writes into one block. The Builders of nested regions share its numbering; names are unique in the
// enclosing function. Types are checked where that is cheap. A wrong module is a defect of a lowering
// (Failure(internal)), never the user's error.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/ir/type.h"

namespace systole::stablehlo {

// A value of the module: its name ("%12", "%arg0") and its type.
struct Ssa {
  std::string name;
  Type type;
};

// tensor<16x256xbf16>; bool is i1.
std::string type_text(const Type& type);
std::string mlir_string(std::string_view text);  // an MLIR string literal, with quotes

// The device groups of a collective over one mesh axis: their numbers, as an attribute or the name that the module
// defines for it, and the number of devices per group.
struct ReplicaGroups {
  std::string attribute;
  std::int64_t size = 0;
};

class Builder {
 public:
  explicit Builder(std::string& text, int indent = 0);

  // The place in the model of the next operations ("blocks/attn.q: contract"). Compilers keep it as the op_name of
  // their instructions. Empty: none.
  void set_place(std::string place);

  // From now on operands of products are converted to the result's type, for compilers without narrow products (XLA's
  // CPU has none from bf16 to f32). Results do not change, because products of narrow numbers are exact.
  void widen_products() { numbering_->wide_products = true; }

  // --- elementwise. `op` without "stablehlo.": "negate", "exponential", "log_plus_one", …
  Ssa unary(std::string_view op, const Ssa& x);
  Ssa binary(std::string_view op, const Ssa& a, const Ssa& b);          // result of a's type
  Ssa compare(std::string_view direction, const Ssa& a, const Ssa& b);  // "LT", "EQ", …; kind by a's dtype
  Ssa select(const Ssa& pred, const Ssa& a, const Ssa& b);
  Ssa convert(const Ssa& x, DType dtype);       // x itself if it already has the type
  Ssa bitcast(const Ssa& x, const Type& type);  // bitcast_convert
  Ssa is_finite(const Ssa& x);

  // --- constants
  Ssa constant(const Type& type, double value);                   // a splat; infinities and NaN are allowed
  Ssa integer(const Type& type, std::uint64_t bits);              // a splat, exact for every integer type
  Ssa table(const Type& type, std::span<const double> elements);  // for small tables only
  Ssa iota(const Type& type, int dim);

  // --- movement
  Ssa broadcast(const Ssa& x, const Type& type, std::span<const int> dims);  // broadcast_in_dim
  Ssa splat(const Ssa& scalar, const Type& like);  // a scalar broadcast to like's shape, with the scalar's dtype
  Ssa reshape(const Ssa& x, const Shape& shape);
  Ssa transpose(const Ssa& x, std::span<const int> permutation);
  Ssa slice(const Ssa& x, std::span<const std::int64_t> start, std::span<const std::int64_t> limit);
  Ssa dynamic_slice(const Ssa& x, std::span<const Ssa> start, const Shape& sizes);  // start: of one integer type
  Ssa dynamic_update(const Ssa& x, const Ssa& part, std::span<const Ssa> start);
  Ssa concatenate(std::span<const Ssa> parts, int dim);
  Ssa pad(const Ssa& x, const Ssa& value, std::span<const std::int64_t> low, std::span<const std::int64_t> high);

  // --- sums and products
  Ssa reduce(std::string_view op, const Ssa& x,
             std::span<const int> dims);  // "add", "maximum", "minimum", "and"; x's dtype
  struct DotDims {
    std::vector<int> a_batch, b_batch, a_contract, b_contract;
  };
  // Dims of the result: batch, free dims of a, free dims of b. Accumulates in `dtype`, the type of the result.
  Ssa dot(const Ssa& a, const Ssa& b, const DotDims& dims, DType dtype);

  // --- rows by index. ids i32[...] must be within the table (the caller clamps and masks): table[v, e] → [..., e], and
  // its transpose, rows[..., e] added to into[v, e].
  Ssa gather_rows(const Ssa& table, const Ssa& ids);
  Ssa scatter_add_rows(const Ssa& into, const Ssa& ids, const Ssa& rows);
  // Replaces rows. Rows with ids outside the table are dropped; ids inside must be distinct.
  Ssa scatter_rows(const Ssa& into, const Ssa& ids, const Ssa& rows);

  // Ascending along the dim; equal elements in any order.
  Ssa sort(const Ssa& x, int dim);

  // --- regions. `body` gets a Builder of its block, the index (i32[], from 0 up to count, or from count - 1 down) and
  // the carries, and returns the new carries.
  using Body = std::function<std::vector<Ssa>(Builder&, const Ssa& index, std::span<const Ssa> carries)>;
  std::vector<Ssa> loop(std::int64_t count, std::span<const Ssa> carries, const Body& body, bool reverse = false);
  // The same from and to dynamic values (i32[]), for loops that can skip blocks.
  std::vector<Ssa> loop(const Ssa& from, const Ssa& to, std::span<const Ssa> carries, const Body& body);
  // Runs one of two blocks, selected by a bool[]; both return the same types.
  using Branch = std::function<std::vector<Ssa>(Builder&)>;
  std::vector<Ssa> branch(const Ssa& pred, const Branch& then, const Branch& otherwise);
  // optimization_barrier: the compiler moves no operation across it.
  std::vector<Ssa> barrier(std::span<const Ssa> values);

  // --- collectives, by device numbers; channel ids are assigned in the order of writing.
  Ssa all_reduce(std::string_view op, const Ssa& x, const ReplicaGroups& groups);
  Ssa all_gather(const Ssa& x, int dim, const ReplicaGroups& groups);
  Ssa reduce_scatter(std::string_view op, const Ssa& x, int dim, const ReplicaGroups& groups);
  Ssa all_to_all(const Ssa& x, int split_dim, int concat_dim, const ReplicaGroups& groups);
  Ssa collective_permute(const Ssa& x, std::string_view pairs);  // pairs: [from, to] per device, an attribute
  Ssa partition_id();                                            // ui32[]

  // Any other call, with results of the given types. Operands and results are row-major, unless `result_layouts` gives
  // the dims of each result from minor to major.
  std::vector<Ssa> custom_call(std::string_view target, std::span<const Ssa> operands, std::span<const Type> results,
                               std::string_view backend_config, std::span<const std::vector<int>> result_layouts = {});
  void give(std::string_view terminator, std::span<const Ssa> values);  // "stablehlo.return", "func.return"

 private:
  struct Numbering {
    int next_name = 0, next_channel = 1;
    bool wide_products = false;
  };
  struct Inside {};  // tag for the Builder of a region
  Builder(Builder& around, Inside);

  std::string fresh();
  void indent();
  // `%3 = "stablehlo.op"(operands) {attrs}` with one result.
  Ssa line(std::string_view op, std::span<const Ssa> operands, std::string_view attrs, const Type& result);
  // The start and end of an operation with regions; and a region that combines two scalars by an op.
  void begin(std::string_view results, std::string_view op, std::span<const Ssa> operands);
  void end(std::string_view attrs, std::span<const Ssa> operands, std::span<const Type> results);
  void combiner(std::string_view op, DType dtype);  // op "": returns the second scalar
  Ssa scatter(std::string_view op, const Ssa& into, const Ssa& ids, const Ssa& rows);
  std::vector<Ssa> open_block(std::span<const Type> types);
  std::vector<Ssa> loop_over(const Ssa& from, const Ssa& to, std::span<const Ssa> carries, const Body& body);
  std::string channel();

  std::string* text_;
  int indent_;
  std::string place_;
  std::shared_ptr<Numbering> numbering_;
};

}  // namespace systole::stablehlo
