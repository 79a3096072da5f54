#pragma once
// The buffers that a compiler gave to a program's values, as it writes them beside the optimised module (a HloProto,
// which XLA's compilers dump). Sizes are of one device.

#include <cstdint>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole::pjrt {

struct BufferAllocation {
  Bytes size;
  std::int64_t memory = 0;  // which of the device's: 0 its main one, TPUs have 1 (VMEM) and 5 (the host's), and others
  bool is_parameter = false, is_output = false, is_constant = false, is_of_thread = false;
};

// Errors: corrupt: no such message, or it ends too early; it has no buffers.
Result<std::vector<BufferAllocation>> read_buffers(std::string_view hlo_proto);

}  // namespace systole::pjrt
