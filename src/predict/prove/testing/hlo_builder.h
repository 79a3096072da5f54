#pragma once
// Builds small optimised modules for tests: one instruction per call, ids in order from 1.

#include <string>
#include <vector>

#include "ground/pjrt/hlo_module.h"

namespace systole::prove {

class HloBuilder {
 public:
  using Ids = std::vector<std::int64_t>;

  // Begins a computation. Later instructions belong to it, and the last one is its root. Returns its id.
  std::int64_t computation() {
    at_ = static_cast<std::int64_t>(module_.computations.size()) + 100;
    module_.computations[at_].id = at_;
    return at_;
  }
  // Returns its id.
  std::int64_t add(pjrt::HloInstruction instruction) {
    pjrt::HloComputation& computation = module_.computations.at(at_);
    instruction.id = ++last_;
    if (instruction.name.empty()) instruction.name = instruction.opcode + "." + std::to_string(last_);
    computation.root = last_;
    computation.instructions.push_back(std::move(instruction));
    return last_;
  }
  std::int64_t add(const std::string& opcode, Ids operands, pjrt::HloShape shape = whole()) {
    pjrt::HloInstruction instruction;
    instruction.opcode = opcode;
    instruction.operands = std::move(operands);
    instruction.shape = std::move(shape);
    return add(std::move(instruction));
  }
  std::int64_t constant(std::int64_t value) {
    pjrt::HloInstruction instruction;
    instruction.opcode = "constant";
    instruction.shape = whole();
    instruction.constant = value;
    return add(std::move(instruction));
  }
  std::int64_t parameter(std::int64_t number = 0) {
    pjrt::HloInstruction instruction;
    instruction.opcode = "parameter";
    if (number > 0) instruction.parameter_number = number;
    return add(std::move(instruction));
  }
  std::int64_t part(std::int64_t tuple, std::int64_t index) {
    pjrt::HloInstruction instruction;
    instruction.opcode = "get-tuple-element";
    instruction.operands = {tuple};
    if (index > 0) instruction.tuple_index = index;  // compilers do not write a 0 either
    instruction.shape = whole();
    return add(std::move(instruction));
  }
  std::int64_t compare(const std::string& direction, std::int64_t a, std::int64_t b) {
    pjrt::HloInstruction instruction;
    instruction.opcode = "compare";
    instruction.comparison = direction;
    instruction.operands = {a, b};
    instruction.shape.dtype = DType::boolean;
    return add(std::move(instruction));
  }
  std::int64_t call(const std::string& opcode, Ids operands, Ids called, pjrt::HloShape shape = whole()) {
    pjrt::HloInstruction instruction;
    instruction.opcode = opcode;
    instruction.operands = std::move(operands);
    instruction.called = std::move(called);
    instruction.shape = std::move(shape);
    return add(std::move(instruction));
  }
  pjrt::HloInstruction& instruction(std::int64_t id) {
    for (auto& [ignored, computation] : module_.computations)
      for (pjrt::HloInstruction& instruction : computation.instructions)
        if (instruction.id == id) return instruction;
    CHECK(false, "no instruction {}", id);
    return module_.computations.begin()->second.instructions.front();
  }
  // The last computation is the entry.
  const pjrt::HloModule& done() {
    module_.entry = at_;
    return module_;
  }

  static pjrt::HloShape whole() { return of(DType::i32, {}); }
  static pjrt::HloShape of(DType dtype, Shape dims) {
    pjrt::HloShape shape;
    shape.dtype = dtype;
    shape.dims = std::move(dims);
    return shape;
  }

 private:
  pjrt::HloModule module_;
  std::int64_t at_ = 0, last_ = 0;
};

}  // namespace systole::prove
