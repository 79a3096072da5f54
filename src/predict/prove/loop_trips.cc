#include "predict/prove/loop_trips.h"

#include <functional>
#include <set>

namespace systole::prove {
namespace {

using pjrt::HloComputation;
using pjrt::HloInstruction;
using Number = std::optional<std::int64_t>;
using Numbers = std::map<std::int64_t, Number>;  // of a loop's carried values, by index in its tuple

constexpr int kDeepest = 64;
constexpr std::int64_t kMostTrips = 100'000, kMostSteps = 500'000;

// The value of element `part` of a parameter's tuple, or for -1 of the parameter itself.
using Parameter = std::function<Number(std::int64_t parameter, std::int64_t part)>;

class Evaluator {
 public:
  explicit Evaluator(const HloLookup& lookup) : lookup_(lookup) {}

  Number value(const HloInstruction* of, const Parameter& parameters, int depth = 0) const {
    if (of == nullptr || depth > kDeepest || ++steps_ > kMostSteps) return std::nullopt;
    const auto operand = [&](std::size_t i) { return value(lookup_.operand(*of, i), parameters, depth + 1); };
    const std::string& op = of->opcode;
    if (op == "constant") return of->constant;
    if (op == "parameter") return parameters(of->parameter_number.value_or(0), -1);
    if (op == "copy" || op == "bitcast" || op == "convert" || op == "reshape" || op == "optimization-barrier")
      return operand(0);
    if (op == "get-tuple-element") return part(lookup_.operand(*of, 0), of->tuple_index.value_or(0), parameters, depth);
    if (op == "fusion" || op == "call") return called(*of, -1, parameters, depth);
    if (op == "compare") return compared(of->comparison, operand(0), operand(1));
    if (op == "add" || op == "subtract" || op == "multiply" || op == "and" || op == "or" || op == "minimum" ||
        op == "maximum")
      return combined(op, operand(0), operand(1));
    if (op == "not") {
      const Number a = operand(0);
      return a ? Number(*a == 0 ? 1 : 0) : std::nullopt;
    }
    return std::nullopt;
  }

  // Element `index` of a value that is a tuple.
  Number part(const HloInstruction* of, std::int64_t index, const Parameter& parameters, int depth) const {
    if (of == nullptr || depth > kDeepest) return std::nullopt;
    if (of->opcode == "parameter") return parameters(of->parameter_number.value_or(0), index);
    if (of->opcode == "tuple")
      return value(lookup_.operand(*of, static_cast<std::size_t>(index)), parameters, depth + 1);
    if (of->opcode == "fusion" || of->opcode == "call") return called(*of, index, parameters, depth);
    if (of->opcode == "copy" || of->opcode == "optimization-barrier")
      return part(lookup_.operand(*of, 0), index, parameters, depth + 1);
    return std::nullopt;
  }

 private:
  Number called(const HloInstruction& of, std::int64_t index, const Parameter& parameters, int depth) const {
    if (of.called.size() != 1) return std::nullopt;
    const HloInstruction* root = lookup_.instruction(lookup_.computation(of.called.front()).root);
    const Parameter inner = [&](std::int64_t parameter, std::int64_t inner_part) -> Number {
      const HloInstruction* given = lookup_.operand(of, static_cast<std::size_t>(parameter));
      return inner_part < 0 ? value(given, parameters, depth + 1) : part(given, inner_part, parameters, depth + 1);
    };
    return index < 0 ? value(root, inner, depth + 1) : part(root, index, inner, depth + 1);
  }

  static Number compared(const std::string& direction, Number a, Number b) {
    if (!a || !b) return std::nullopt;
    if (direction == "LT") return *a < *b ? 1 : 0;
    if (direction == "LE") return *a <= *b ? 1 : 0;
    if (direction == "GT") return *a > *b ? 1 : 0;
    if (direction == "GE") return *a >= *b ? 1 : 0;
    if (direction == "EQ") return *a == *b ? 1 : 0;
    if (direction == "NE") return *a != *b ? 1 : 0;
    return std::nullopt;
  }

  static Number combined(const std::string& op, Number a, Number b) {
    if (!a || !b) return std::nullopt;
    std::int64_t result = 0;
    if (op == "add") return __builtin_add_overflow(*a, *b, &result) ? std::nullopt : Number(result);
    if (op == "subtract") return __builtin_sub_overflow(*a, *b, &result) ? std::nullopt : Number(result);
    if (op == "multiply") return __builtin_mul_overflow(*a, *b, &result) ? std::nullopt : Number(result);
    if (op == "and") return *a & *b;
    if (op == "or") return *a | *b;
    return op == "minimum" ? std::min(*a, *b) : std::max(*a, *b);
  }

  const HloLookup& lookup_;
  mutable std::int64_t steps_ = 0;  // limits expressions that name another twice, which does the same
};

// The carried values that these instructions depend on, as indices into the parameter of their computation.
std::set<std::int64_t> parts_used(const HloLookup& lookup, const std::vector<const HloInstruction*>& from) {
  std::set<std::int64_t> parts, seen;
  std::vector<const HloInstruction*> open = from;
  while (!open.empty()) {
    const HloInstruction* at = open.back();
    open.pop_back();
    if (at == nullptr || !seen.insert(at->id).second) continue;
    if (at->opcode == "get-tuple-element") {
      const HloInstruction* of = lookup.operand(*at, 0);
      if (of != nullptr && of->opcode == "parameter") parts.insert(at->tuple_index.value_or(0));  // 0 is not written
    }
    for (std::size_t i = 0; i < at->operands.size(); ++i) open.push_back(lookup.operand(*at, i));
  }
  return parts;
}

}  // namespace

HloLookup::HloLookup(const pjrt::HloModule& module) : module_(module) {
  for (const auto& [id, computation] : module.computations)
    for (const HloInstruction& instruction : computation.instructions) instructions_[instruction.id] = &instruction;
}

const HloInstruction* HloLookup::instruction(std::int64_t id) const {
  const auto found = instructions_.find(id);
  return found == instructions_.end() ? nullptr : found->second;
}

const HloInstruction* HloLookup::operand(const HloInstruction& of, std::size_t index) const {
  return index < of.operands.size() ? instruction(of.operands[index]) : nullptr;
}

std::optional<std::int64_t> loop_trips(const HloLookup& lookup, const HloInstruction& loop) {
  if (loop.called.size() != 2) return std::nullopt;
  // A while calls its body and its condition; the condition is the one that returns a boolean.
  const auto is_condition = [&](std::int64_t id) {
    const HloInstruction* root = lookup.instruction(lookup.computation(id).root);
    return root != nullptr && root->shape.dtype == DType::boolean && root->shape.dims.empty();
  };
  const bool second = is_condition(loop.called[1]);
  if (second == is_condition(loop.called[0])) return std::nullopt;
  const Evaluator evaluator(lookup);
  const HloInstruction* test = lookup.instruction(lookup.computation(loop.called[second ? 1 : 0]).root);
  const HloInstruction* next = lookup.instruction(lookup.computation(loop.called[second ? 0 : 1]).root);

  // The values that the condition reads, and those that they depend on.
  std::set<std::int64_t> wanted = parts_used(lookup, {test});
  if (next != nullptr && next->opcode == "tuple") {
    for (std::size_t before = 0; before != wanted.size();) {
      before = wanted.size();
      std::vector<const HloInstruction*> made;
      for (const std::int64_t part : wanted) made.push_back(lookup.operand(*next, static_cast<std::size_t>(part)));
      wanted.merge(parts_used(lookup, made));
    }
  }
  const Parameter none = [](std::int64_t, std::int64_t) { return std::nullopt; };
  Numbers state;
  for (const std::int64_t part : wanted) state[part] = evaluator.part(lookup.operand(loop, 0), part, none, 0);
  const Parameter carried = [&](std::int64_t, std::int64_t part) {
    const auto found = state.find(part);
    return found == state.end() ? std::nullopt : found->second;
  };
  for (std::int64_t trips = 0; trips <= kMostTrips; ++trips) {
    const Number again = evaluator.value(test, carried);
    if (!again) return std::nullopt;
    if (*again == 0) return trips;
    Numbers after;
    for (const std::int64_t part : wanted) after[part] = evaluator.part(next, part, carried, 0);
    if (after == state) return std::nullopt;  // nothing changes: it would never end
    state = std::move(after);
  }
  return std::nullopt;
}

}  // namespace systole::prove
