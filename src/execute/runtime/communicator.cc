#include "execute/runtime/communicator.h"

namespace systole {

Bytes collective_workspace(const CollectiveCall& call) {
  constexpr std::int64_t kAlignment = 64;
  if (call.parts <= 1 || !call.reduces()) return Bytes(0);
  const std::int64_t elements = num_elements(call.shape);
  std::int64_t bytes = 0;
  if (rounds_once(call)) {
    bytes = (elements + call.parts - 1) / call.parts * size_of(DType::f32);
  } else if (call.kind == CollectiveKind::reduce_scatter && call.algorithm != CollectiveAlgorithm::direct) {
    bytes = elements * size_of(call.dtype);
  }
  return Bytes((bytes + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace systole
