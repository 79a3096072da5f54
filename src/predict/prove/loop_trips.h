#pragma once
// Finds the trip count of a loop of an optimised module, which the module does not state. A `while` has a condition, a
// body, and an integer that the condition reads and the body changes. The loop is simulated on such integers alone:
// begin, compare, step. A count that depends on data, or is larger than anyone would write, stays unknown.

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "ground/pjrt/hlo_module.h"

namespace systole::prove {

// Finds instructions and computations by id; a computation stores its instructions in a list.
class HloLookup {
 public:
  explicit HloLookup(const pjrt::HloModule& module);
  const pjrt::HloModule& module() const { return module_; }
  const pjrt::HloComputation& computation(std::int64_t id) const { return module_.computations.at(id); }
  // Null: no such id.
  const pjrt::HloInstruction* instruction(std::int64_t id) const;
  const pjrt::HloInstruction* operand(const pjrt::HloInstruction& of, std::size_t index) const;

 private:
  const pjrt::HloModule& module_;  // borrowed
  std::unordered_map<std::int64_t, const pjrt::HloInstruction*> instructions_;
};

// Nothing: unknown. REQUIRES: `loop` is a while of the module.
std::optional<std::int64_t> loop_trips(const HloLookup& lookup, const pjrt::HloInstruction& loop);

}  // namespace systole::prove
