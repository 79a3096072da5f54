#pragma once
// The buffer assignment of a compiled program, as XLA's compilers dump it beside the optimized module (a HloProto).
// Sizes are per device.

#include <cstdint>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole::pjrt {

struct BufferAllocation {
  Bytes size;
  std::int64_t memory = 0;  // memory space: 0 is the main one; TPUs also have 1 (VMEM), 5 (host) and others
  bool is_parameter = false, is_output = false, is_constant = false, is_of_thread = false;
};

// Errors: corrupt: not such a message, truncated, or without buffers.
Result<std::vector<BufferAllocation>> read_buffers(std::string_view hlo_proto);

}  // namespace systole::pjrt
