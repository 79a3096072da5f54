#pragma once
// What an op is: all facets that need no device, in one definition object (graph/ops/<op>.cc). Ops know work; only
// perf divides it by a speed. Backends own their tables op → kernel.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/graph/ir.h"
#include "describe/graph/scalar.h"

namespace systole {

// A node without its graph: what `infer`, `work` and `sharding` may look at.
struct OpCall {
  const OpDef& op;
  const Attrs& attrs;
  std::span<const Type> operands;
  std::span<const Graph> regions;
  int num_operands() const { return static_cast<int>(operands.size()); }
  const Type& operand(int i) const { return operands[static_cast<std::size_t>(i)]; }
};

// What a call does, as a function of shapes only. `flops` counts each add, subtract, multiply and divide of the
// formula as 1 (a sum of n starts at zero and adds n times), `transcendentals` each exp, log, tanh, sqrt, … .
// Comparisons, selections, conversions and integer index arithmetic count nothing. `model_flops` is the part that the
// convention of utilisation counts: contractions and attention, without anything done twice.
struct Work {
  std::int64_t flops = 0;
  std::int64_t transcendentals = 0;
  std::int64_t model_flops = 0;
  Bytes read, written;  // distinct operands and results
  Work& operator+=(const Work& other);
  Work operator*(std::int64_t times) const;
  bool operator==(const Work&) const = default;
};

// How an op may be cut over devices, in factor notation ("btk,kn->btn"): each dim of each operand and result is one
// factor (-1: a dim of its own that is never cut, e.g. size 1). A factor is
//   pass        cut anywhere: each device computes its part (batch, row, column)
//   reduction   cut: results without its dim are partial sums over the axis, results with it are parts
//   replicated  must be whole on every device
//   local       cut by a local rewrite: `local_rewrite` gives the device's graph, with collectives
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

// "btk,kn->btn" with kinds: letters in `reduced`, `replicated`, `local` are of that kind, all others pass; a dim
// written '.' belongs to no factor.
ShardingRule sharding_rule(std::string_view notation, std::string_view reduced = "", std::string_view replicated = "",
                           std::string_view local = "");

// Builds the gradient of one node, in the backward graph, out of public ops. operand(i) and result(i) are values of the
// forward graph: asking for one makes it a residual or has it recomputed, so ask only for what is needed.
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
  virtual bool needs(int operand) const = 0;                     // somebody wants this operand's gradient
  virtual Graph& graph() = 0;                                    // where to build
};
using Gradients = std::vector<std::optional<Value>>;  // per operand; nothing: zero or not wanted

// One node on the slow path: views of operands and results, scalars that count.
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

// Which types a mixed-precision pass gives an op's floating-point operands.
enum class PrecisionRule {
  follow,   // the lowest of its operands' types (elementwise, data movement)
  compute,  // all in the compute type (contractions, attention)
  mixed,    // operand 0 in the compute type, the others (scales, biases of norms) as they are
  f32,      // as they are, computed in f32 (losses, optimizers, sums)
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

  // REQUIRES nothing; checks everything. Errors: Failure(invalid) "<op>_c<n>: …".
  std::function<std::vector<Type>(const OpCall&)> infer;
  std::function<Gradients(GradientCall&)> gradient;  // empty: not differentiable; then no gradient flows
  std::function<Work(const OpCall&, std::span<const Type> results)> work;
  std::function<ShardingRule(const OpCall&)> sharding;
  // The graph of one device when a `local` factor is cut `parts` ways over `axis`: inputs are the local operands, then
  // "offset": i64[] of the first index of the cut dim; empty when there is no local factor.
  std::function<Graph(const OpCall& local, int factor, std::string_view axis, std::int64_t parts)> local_rewrite;
  // The attributes of a device's part, whose results are of types `local` (attributes that hold sizes: shape, limit,
  // …); `local_rewrite` finds them in local.attrs. Empty: the attributes hold for every part.
  std::function<Attrs(const Attrs& whole, std::span<const Type> local)> local_attrs;
  std::function<void(const ReferenceCall&)> reference;

  PrecisionRule precision = PrecisionRule::follow;
  bool elementwise = false;       // result element i depends on operand elements i only; may join a chain
  bool cheap = false;             // moves or converts only: recomputed rather than kept for the backward pass
  bool view = false;              // the result is the operand's bytes (reshape)
  bool effects = false;           // must be kept though nobody reads it (none so far)
  std::vector<InPlace> in_place;  // result may take the operand's place if that is its last use
};

// Every op, in one explicit list (ops/list.cc). Sorted by family, not by name.
std::span<const OpDef* const> all_ops();
// Errors: Failure(not_found) with the nearest names.
const OpDef& op_named(std::string_view name);
const OpDef* find_op(std::string_view name);

// Reads and writes of distinct operands and of results, whole.
Work moves(std::span<const Type> operands, std::span<const Type> results);

// [[noreturn]] with the label of a constraint: constraint("softmax_c1", "dim {} of {}", …).
template <typename... Args>
[[noreturn]] void constraint(const char* label, fmt::format_string<Args...> format, Args&&... args) {
  fail(error(ErrorKind::invalid, "{}: {}", label, fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace systole
