// Field numbers: openxla/xla xla/service/hlo.proto (HloProto, BufferAssignmentProto, BufferAllocationProto), as of
// 2026-06.

#include "ground/pjrt/buffer_assignment.h"

#include "ground/pjrt/wire.h"

namespace systole::pjrt {
namespace {

Result<BufferAllocation> read_allocation(std::string_view message) {
  BufferAllocation allocation;
  WireReader reader(message);
  while (const std::optional<WireField> field = TRY(reader.next())) {
    switch (field->number) {
      case 2: allocation.size = Bytes(TRY(field->integer())); break;
      case 3: allocation.is_of_thread = TRY(field->integer()) != 0; break;
      case 5: allocation.is_parameter = TRY(field->integer()) != 0; break;
      case 7: allocation.is_output = TRY(field->integer()) != 0; break;
      case 8: allocation.memory = TRY(field->integer()); break;
      case 12: allocation.is_constant = TRY(field->integer()) != 0; break;
      default: break;
    }
  }
  constexpr Bytes kMost{std::int64_t{1} << 60};
  if (allocation.size < Bytes() || allocation.size > kMost)
    return error(ErrorKind::corrupt, "a buffer of {} bytes", allocation.size.count());
  return allocation;
}

}  // namespace

Result<std::vector<BufferAllocation>> read_buffers(std::string_view hlo_proto) {
  std::vector<BufferAllocation> allocations;
  bool there = false;
  WireReader reader(hlo_proto);
  while (const std::optional<WireField> field = TRY(reader.next())) {
    if (field->number != 3) continue;
    there = true;
    WireReader assignment(TRY(field->bytes()));
    while (const std::optional<WireField> inner = TRY(assignment.next()))
      if (inner->number == 3) allocations.push_back(TRY(read_allocation(TRY(inner->bytes()))));
  }
  if (!there) return error(ErrorKind::corrupt, "the module has no buffers");
  return allocations;
}

}  // namespace systole::pjrt
