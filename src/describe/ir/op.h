#pragma once
// The definition of an op: one object with all facets that need no device (describe/ops/<op>.cc). Ops report work
// (FLOPs and bytes); only perf divides it by a speed. Each backend owns its table op → kernel.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/ir/ir.h"
#include "describe/ir/scalar.h"

namespace systole {

// A node without its graph: all that `infer`, `work` and `sharding` may read.
struct OpCall {
  const OpDef& op;
  const Attrs& attrs;
  std::span<const Type> operands;
  std::span<const Graph> regions;
  int num_operands() const { return static_cast<int>(operands.size()); }
  const Type& operand(int i) const { return operands[static_cast<std::size_t>(i)]; }
};

// The work of a call, as a function of shapes only. `flops` counts each add, subtract, multiply and divide of the
// formula as 1; a sum of n terms starts at zero and counts n additions. `transcendentals` counts each exp, log, tanh,
// sqrt, … . Comparisons, selections, conversions and integer index arithmetic count nothing. `model_flops` is what
// model FLOPs utilization (MFU) counts: contractions and attention, without recomputation.
struct Work {
  std::int64_t flops = 0;
  std::int64_t transcendentals = 0;
  std::int64_t model_flops = 0;
  Bytes read, written;  // distinct operands and results
  Work& operator+=(const Work& other);
  Work operator*(std::int64_t times) const;
  bool operator==(const Work&) const = default;
};

// How an op may be sharded, in factor notation ("btk,kn->btn"): each dim of each operand and result belongs to one
// factor; -1 is a dim that is never sharded, e.g. of size 1. Kinds of factor:
//   pass        sharded anywhere: each device computes its shard (batch, row, column)
//   reduction   when sharded, results without its dim are partial sums over the axis; results with it are shards
//   replicated  whole on every device
//   local       sharded by a local rewrite: `local_rewrite` gives the device's graph, with collectives
struct ShardingRule {
  enum class Kind { pass, reduction, replicated, local };
  struct Factor {
    std::string name;
    Kind kind = Kind::pass;
  };
  std::vector<Factor> factors;
  std::vector<std::vector<int>> operands;  // per operand, per dim: a factor or -1
  std::vector<std::vector<int>> results;
};

// Parses "btk,kn->btn". Letters in `reduced`, `replicated` and `local` have that kind, all others pass; a dim written
// '.' belongs to no factor.
ShardingRule sharding_rule(std::string_view notation, std::string_view reduced = "", std::string_view replicated = "",
                           std::string_view local = "");

// Builds the gradient of one node, in the backward graph, from public ops. operand(i) and result(i) are values of the
// forward graph: each one that is read becomes a residual or is recomputed, so read only what the gradient needs.
class GradientCall {
 public:
  virtual ~GradientCall() = default;
  virtual const Attrs& attrs() const = 0;
  virtual int num_operands() const = 0;
  virtual const Type& operand_type(int i) const = 0;
  virtual const Type& result_type(int i) const = 0;
  virtual Value operand(int i) = 0;
  virtual Value result(int i) = 0;
  virtual std::optional<Value> cotangent(int result) const = 0;  // nothing: zero
  virtual bool needs(int operand) const = 0;                     // whether this operand's gradient is used
  virtual Graph& graph() = 0;                                    // the backward graph
};
using Gradients = std::vector<std::optional<Value>>;  // per operand; nothing: zero or not wanted

// Views of operands and results for the reference path, with scalars that count operations.
struct TensorView {
  Type type;
  std::byte* data = nullptr;
  Scalar at(std::int64_t index) const { return Scalar(load(type.dtype, data, index)); }
  double raw(std::int64_t index) const { return load(type.dtype, data, index); }
  void set(std::int64_t index, Scalar value) const { store(type.dtype, data, index, value.value()); }
  std::int64_t integer(std::int64_t index) const;  // exact for every integer type
};
struct ReferenceCall {
  const Attrs& attrs;
  std::span<const TensorView> operands;
  std::span<const TensorView> results;
  std::span<const Graph> regions = {};
};

struct OpAttr {
  const char* name;
  const char* kind;  // bool, int, double, string, ints, dtype
  const char* meaning;
  bool required = true;
};

// Which types the mixed-precision pass gives an op's floating-point operands.
enum class PrecisionRule {
  follow,   // the narrowest of its operands' types (elementwise, data movement)
  compute,  // all in the compute type (contractions, attention)
  mixed,    // operand 0 in the compute type, the others (scales, biases of norms; a cache) unchanged
  f32,      // unchanged, computed in f32 (losses, optimizers, sums)
};

struct InPlace {
  int result;
  int operand;
};

struct OpDef {
  const char* name = "";
  const char* summary = "";    // formula and source, for the generated table
  const char* signature = "";  // "(x: float[..., n]) -> (y: float[..., n])"
  std::vector<OpAttr> attrs;

  // Checks all constraints and returns the result types; assumes nothing. Errors: Failure(invalid) "<op>_c<n>: …".
  std::function<std::vector<Type>(const OpCall&)> infer;
  std::function<Gradients(GradientCall&)> gradient;  // empty: not differentiable
  std::function<Work(const OpCall&, std::span<const Type> results)> work;
  std::function<ShardingRule(const OpCall&)> sharding;
  // The graph of one device when a `local` factor is sharded over the `parts` devices of `axis`. Inputs: the local
  // operands, then "offset", i64[], the first index of the device's shard. Empty when the op has no local factor.
  std::function<Graph(const OpCall& local, int factor, std::string_view axis, std::int64_t parts)> local_rewrite;
  // The attributes of one device's call, whose results have types `local`, for attributes that hold sizes (shape,
  // limit, …). `local_rewrite` finds them in local.attrs. Empty: the attributes hold for every shard.
  std::function<Attrs(const Attrs& whole, std::span<const Type> local)> local_attrs;
  std::function<void(const ReferenceCall&)> reference;

  PrecisionRule precision = PrecisionRule::follow;
  bool elementwise = false;       // result element i depends on operand elements i only; may be fused
  bool cheap = false;             // only moves or converts: recomputed in the backward pass rather than kept
  bool view = false;              // the result shares the operand's bytes (reshape)
  std::vector<InPlace> in_place;  // result may overwrite the operand if this is the operand's last use
};

// Every op, in one explicit list (describe/ops/list.cc). Grouped by family, not sorted by name.
std::span<const OpDef* const> all_ops();
// Errors: Failure(not_found). find_op returns null instead.
const OpDef& op_named(std::string_view name);
const OpDef* find_op(std::string_view name);

// The work of reading every operand and writing every result in full, without FLOPs. work_of counts an operand that is
// passed twice once.
Work moves(std::span<const Type> operands, std::span<const Type> results);

// Throws Failure(invalid) with the label of a constraint: constraint("softmax_c1", "dim {} of {}", …).
template <typename... Args>
[[noreturn]] void constraint(const char* label, fmt::format_string<Args...> format, Args&&... args) {
  fail(error(ErrorKind::invalid, "{}: {}", label, fmt::format(format, std::forward<Args>(args)...)));
}

// Follows views back to the value that owns the bytes.
ValueId storage_of(const Graph& graph, ValueId id);

}  // namespace systole
