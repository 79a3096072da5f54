#pragma once
// The Communicator that runs the transfers of ground/mesh over a Transport, for the groups of a Mesh: rank r is the
// mesh's device r.
//
// prepare() turns the transfers of a collective into messages with addresses, one exchange per step, and adds the
// copies, widening and rounding before and between them. A part along a dim that is not outermost is sent and placed
// row by row, never packed. Sums of bf16 and f16 are accumulated in f32 and rounded once.

#include <memory>

#include "execute/runtime/communicator.h"
#include "execute/runtime/transport.h"
#include "ground/mesh/mesh.h"

namespace systole {

// `transport` must outlive it. Errors: invalid if the mesh has another number of devices than the transport has ranks.
Result<std::unique_ptr<Communicator>> make_communicator(Transport& transport, const Mesh& mesh);

}  // namespace systole
