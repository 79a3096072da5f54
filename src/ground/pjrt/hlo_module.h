#pragma once
// A program after optimisation, as Executable::optimized gives it: computations of instructions, read out of the
// serialised module. What is not named here is skipped; the compiler's own words about an instruction
// (`estimated_cycles` and the like) stand in backend_config, which for TPUs and GPUs is JSON.
//
// Executed are the entry computation's instructions in their order, and where one calls others (a loop, a branch, an
// asynchronous start) those. The body of a fusion is called too, but runs as that one instruction.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/pjrt/executable.h"
#include "ground/tensor/shape.h"

namespace systole::pjrt {

// Of a value: an array, or a tuple of shapes. Sizes are without padding.
struct HloShape {
  std::optional<DType> dtype;  // nothing: a tuple, or a type that Systole has not (tokens, contexts)
  Shape dims;
  std::vector<HloShape> parts;  // of a tuple

  Bytes bytes() const;  // of arrays of types that Systole has, of tuples all of theirs
};

struct HloInstruction {
  std::int64_t id = 0;
  std::string name, opcode;  // "fusion.3", "all-reduce"
  HloShape shape;
  std::vector<std::int64_t> operands, called;     // instructions; computations
  std::string fusion_kind;                        // "kLoop"; "" where it is no fusion
  std::string custom_call_target;                 // "" where it is none
  std::string source;                             // the name of the op it was made of, where one was given
  std::string backend_config;                     // the compiler's, as it is
  std::int64_t channel = 0;                       // of a collective; 0: none
  std::vector<std::vector<std::int64_t>> groups;  // of a collective, where they are written out
  std::optional<std::int64_t> parameter_number, tuple_index;
};

struct HloComputation {
  std::int64_t id = 0, root = 0;
  std::string name;
  std::vector<HloInstruction> instructions;  // operands first
};

struct HloModule {
  std::string name;
  std::int64_t entry = 0;
  std::map<std::int64_t, HloComputation> computations;  // by id
  // The order in which a computation's instructions run, by its id; empty where the module has none.
  std::map<std::int64_t, std::vector<std::int64_t>> schedule;
};

// Errors: unsupported (a format other than "hlo" and "hlo_with_config"); corrupt: no such message, a computation that
// is called or entered and is not there, shapes nested without end.
Result<HloModule> read_hlo(const OptimizedModule& module);

}  // namespace systole::pjrt
