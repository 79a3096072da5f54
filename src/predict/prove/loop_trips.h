#pragma once
// How often a loop of an optimised module runs. It is nowhere written down: a `while` has a condition and a body, and a
// value, a whole number, that the condition looks at and the body changes. So the loop is played, with those numbers
// alone: begin, compare, step. What depends on data, or has more rounds than anyone would write, is not known.

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "ground/pjrt/hlo_module.h"

namespace systole::prove {

// By ids: computations have their instructions in a row.
class HloLookup {
 public:
  explicit HloLookup(const pjrt::HloModule& module);
  const pjrt::HloModule& module() const { return module_; }
  const pjrt::HloComputation& computation(std::int64_t id) const { return module_.computations.at(id); }
  // Null when there is none of that id.
  const pjrt::HloInstruction* instruction(std::int64_t id) const;
  const pjrt::HloInstruction* operand(const pjrt::HloInstruction& of, std::size_t index) const;

 private:
  const pjrt::HloModule& module_;  // borrowed
  std::unordered_map<std::int64_t, const pjrt::HloInstruction*> instructions_;
};

// REQUIRES: `loop` is a while of the module.
std::optional<std::int64_t> loop_trips(const HloLookup& lookup, const pjrt::HloInstruction& loop);

}  // namespace systole::prove
