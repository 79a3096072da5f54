#pragma once
// Writes StableHLO as text: one line per operation, in MLIR's generic form, which every version of StableHLO reads and
// https://github.com/openxla/stablehlo/blob/main/docs/spec.md documents.
//
//   Builder b(text);
//   Ssa sum = b.binary("add", x, y);       // %2 = "stablehlo.add"(%0, %1) : (tensor<3xf32>, …) -> tensor<3xf32>
//
// A Builder writes into one block; those of a loop's body share its numbering. Names are of the enclosing function.
// Types are checked where the check is cheap: a wrong module is a defect of the lowering (Failure(internal)), never of
// the user's.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/graph/type.h"

namespace systole::stablehlo {

// A value of the module: its name there ("%12", "%arg0") and its type.
struct Ssa {
  std::string name;
  Type type;
};

// tensor<16x256xbf16>; bool is i1.
std::string type_text(const Type& type);
std::string mlir_string(std::string_view text);  // a string of MLIR, with its quotes

// What a collective needs to know of the mesh: the groups of device numbers that hold one axis together, as an
// attribute or the name that the module gives to it, and how many devices are in each.
struct ReplicaGroups {
  std::string attribute;
  std::int64_t size = 0;
};

class Builder {
 public:
  explicit Builder(std::string& text, int indent = 0);

  // Where in the model the next operations come from ("blocks/attn.q: contract"); the compilers carry it through as
  // the op_name of their instructions. Empty: nowhere.
  void set_place(std::string place);

  // From now on operands of products are widened to the result's type: for a compiler without products of narrow types
  // (XLA's CPU has none from bf16 to f32). The products are the same, for those of narrow numbers are exact.
  void widen_products() { numbering_->wide_products = true; }

  // --- elementwise. `op` without "stablehlo.": "negate", "exponential", "log_plus_one", …
  Ssa unary(std::string_view op, const Ssa& x);
  Ssa binary(std::string_view op, const Ssa& a, const Ssa& b);          // result of a's type
  Ssa compare(std::string_view direction, const Ssa& a, const Ssa& b);  // "LT", "EQ", …; kind by a's dtype
  Ssa select(const Ssa& pred, const Ssa& a, const Ssa& b);
  Ssa convert(const Ssa& x, DType dtype);       // x itself when it has the type
  Ssa bitcast(const Ssa& x, const Type& type);  // bitcast_convert
  Ssa is_finite(const Ssa& x);

  // --- constants
  Ssa constant(const Type& type, double value);                   // a splat; infinities and NaN too
  Ssa integer(const Type& type, std::uint64_t bits);              // a splat, exact for every integer type
  Ssa table(const Type& type, std::span<const double> elements);  // small ones only
  Ssa iota(const Type& type, int dim);

  // --- movement
  Ssa broadcast(const Ssa& x, const Type& type, std::span<const int> dims);  // broadcast_in_dim
  Ssa splat(const Ssa& scalar, const Type& like);  // scalar to like's shape, dtype the scalar's
  Ssa reshape(const Ssa& x, const Shape& shape);
  Ssa transpose(const Ssa& x, std::span<const int> permutation);
  Ssa slice(const Ssa& x, std::span<const std::int64_t> start, std::span<const std::int64_t> limit);
  Ssa dynamic_slice(const Ssa& x, std::span<const Ssa> start, const Shape& sizes);  // scalars, of one integer type
  Ssa dynamic_update(const Ssa& x, const Ssa& part, std::span<const Ssa> start);
  Ssa concatenate(std::span<const Ssa> parts, int dim);
  Ssa pad(const Ssa& x, const Ssa& value, std::span<const std::int64_t> low, std::span<const std::int64_t> high);

  // --- sums and products
  Ssa reduce(std::string_view op, const Ssa& x,
             std::span<const int> dims);  // "add", "maximum", "minimum", "and"; x's dtype
  struct DotDims {
    std::vector<int> a_batch, b_batch, a_contract, b_contract;
  };
  // Result dims: batch, a's free, b's free. Accumulates in `dtype`, which is the result's.
  Ssa dot(const Ssa& a, const Ssa& b, const DotDims& dims, DType dtype);

  // --- rows by index. ids i32[...] within the table (the caller clamps and masks): table[v, e] → [..., e], and its
  // inverse, rows[..., e] added to into[v, e].
  Ssa gather_rows(const Ssa& table, const Ssa& ids);
  Ssa scatter_add_rows(const Ssa& into, const Ssa& ids, const Ssa& rows);
  // In the place of those that were there; rows of ids outside the table are dropped. Ids of those within are distinct.
  Ssa scatter_rows(const Ssa& into, const Ssa& ids, const Ssa& rows);

  // Ascending along the dim; of equal ones any order.
  Ssa sort(const Ssa& x, int dim);

  // --- regions. `body` gets a Builder of its block, the index (i32[] from 0 to count, or from count - 1 down) and the
  // carries, and gives the new carries.
  using Body = std::function<std::vector<Ssa>(Builder&, const Ssa& index, std::span<const Ssa> carries)>;
  std::vector<Ssa> loop(std::int64_t count, std::span<const Ssa> carries, const Body& body, bool reverse = false);
  // The same from and to values of the module (i32[]), for blocks of which some need no work.
  std::vector<Ssa> loop(const Ssa& from, const Ssa& to, std::span<const Ssa> carries, const Body& body);
  // One of two blocks by a bool[]: each gives values of the same types.
  using Branch = std::function<std::vector<Ssa>(Builder&)>;
  std::vector<Ssa> branch(const Ssa& pred, const Branch& then, const Branch& otherwise);
  // Values that nothing may be moved across.
  std::vector<Ssa> barrier(std::span<const Ssa> values);

  // --- collectives, by the devices' numbers; channel ids are given in the order written.
  Ssa all_reduce(std::string_view op, const Ssa& x, const ReplicaGroups& groups);
  Ssa all_gather(const Ssa& x, int dim, const ReplicaGroups& groups);
  Ssa reduce_scatter(std::string_view op, const Ssa& x, int dim, const ReplicaGroups& groups);
  Ssa all_to_all(const Ssa& x, int split_dim, int concat_dim, const ReplicaGroups& groups);
  Ssa collective_permute(const Ssa& x, std::string_view pairs);  // [from, to] of each device, an attribute
  Ssa partition_id();                                            // ui32[]

  // Anything else, whole: results of the given types. Operands are row-major, and so are results, unless
  // `result_layouts` gives the dims of each from the innermost out.
  std::vector<Ssa> custom_call(std::string_view target, std::span<const Ssa> operands, std::span<const Type> results,
                               std::string_view backend_config, std::span<const std::vector<int>> result_layouts = {});
  void give(std::string_view terminator, std::span<const Ssa> values);  // "stablehlo.return", "func.return"

 private:
  struct Numbering {
    int next_name = 0, next_channel = 1;
    bool wide_products = false;
  };
  struct Inside {};  // the tag of a Builder of a region
  Builder(Builder& around, Inside);

  std::string fresh();
  void indent();
  // `%3 = "stablehlo.op"(operands) {attrs}` of one result.
  Ssa line(std::string_view op, std::span<const Ssa> operands, std::string_view attrs, const Type& result);
  // The halves of a line around its regions; a region that combines two scalars by an op.
  void begin(std::string_view results, std::string_view op, std::span<const Ssa> operands);
  void end(std::string_view attrs, std::span<const Ssa> operands, std::span<const Type> results);
  void combiner(std::string_view op, DType dtype);  // op "": the second
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
