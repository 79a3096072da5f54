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

// How a kernel moves along one spatial dim of a convolution.
struct HloWindow {
  std::int64_t size = 1, stride = 1, padding_low = 0, padding_high = 0, dilation = 1, base_dilation = 1;
};

// Which dims of its operands and its result are which.
struct HloConvolution {
  std::int64_t input_batch = 0, input_feature = 0, output_feature = 0;
  std::vector<std::int64_t> input_spatial, output_spatial;
  std::int64_t feature_groups = 1, batch_groups = 1;
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
  std::int64_t group_size = 0;                    // where they are only counted; 0: all devices
  std::optional<std::int64_t> parameter_number, tuple_index;
  std::optional<std::int64_t> constant;  // the value of a constant that is one whole number, or true or false
  std::string comparison;                // "LT" of a compare; "" where it is none
  std::vector<std::int64_t> contracted;  // of a dot: dims of its first operand that are summed over
  std::vector<HloWindow> window;  // of a convolution, a spatial dim each; of a reduction over windows, a dim each
  HloConvolution convolution;     // of one
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
