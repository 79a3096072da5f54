#pragma once
// An optimized program, as Executable::optimized returns it: computations of instructions, parsed from the serialized
// module. Fields not listed here are skipped. The compiler's estimates for an instruction (`estimated_cycles` and the
// like) are in backend_config, which for TPUs and GPUs is JSON.
//
// Execution runs the entry computation's instructions in order, and the computations that they call (a loop, a branch,
// an asynchronous start). A fusion also calls its body but runs as one instruction.

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

// The shape of a value: an array, or a tuple of shapes. Sizes exclude padding.
struct HloShape {
  std::optional<DType> dtype;  // nothing: a tuple, or a type without a Systole dtype (tokens, contexts)
  Shape dims;
  std::vector<HloShape> parts;  // elements of a tuple

  Bytes bytes() const;  // the array, or the sum over a tuple; 0 for types without a Systole dtype
};

// The window of a convolution or reduction along one dim.
struct HloWindow {
  std::int64_t size = 1, stride = 1, padding_low = 0, padding_high = 0, dilation = 1, base_dilation = 1;
};

// The dims of a convolution's operands and result.
struct HloConvolution {
  std::int64_t input_batch = 0, input_feature = 0, output_feature = 0;
  std::vector<std::int64_t> input_spatial, output_spatial;
  std::int64_t feature_groups = 1, batch_groups = 1;
};

struct HloInstruction {
  std::int64_t id = 0;
  std::string name, opcode;  // "fusion.3", "all-reduce"
  HloShape shape;
  std::vector<std::int64_t> operands, called;     // ids of instructions; ids of computations
  std::string fusion_kind;                        // "kLoop"; "" if not a fusion
  std::string custom_call_target;                 // "" if not a custom call
  std::string source;                             // name of the source op, if known
  std::string backend_config;                     // the compiler's own text
  std::int64_t channel = 0;                       // of a collective; 0: none
  std::vector<std::vector<std::int64_t>> groups;  // of a collective, if listed
  std::int64_t group_size = 0;                    // if the groups are not listed; 0: all devices
  std::optional<std::int64_t> parameter_number, tuple_index;
  std::optional<std::int64_t> constant;  // of a scalar integer or boolean constant
  std::string comparison;                // "LT" of a compare; else ""
  std::vector<std::int64_t> contracted;  // of a dot: contracted dims of its first operand
  std::vector<HloWindow> window;         // of a convolution: per spatial dim; of a reduce-window: per dim
  HloConvolution convolution;            // of a convolution
};

struct HloComputation {
  std::int64_t id = 0, root = 0;
  std::string name;
  std::vector<HloInstruction> instructions;  // operands come first
};

struct HloModule {
  std::string name;
  std::int64_t entry = 0;
  std::map<std::int64_t, HloComputation> computations;  // by id
  // Computation id → instruction ids in execution order; empty if the module has no schedule.
  std::map<std::int64_t, std::vector<std::int64_t>> schedule;
};

// Errors: unsupported (a format other than "hlo" and "hlo_with_config"); corrupt: not such a message, a missing
// computation, shapes nested too deep.
Result<HloModule> read_hlo(const OptimizedModule& module);

}  // namespace systole::pjrt
