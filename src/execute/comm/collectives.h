#pragma once
// The Communicator that plays the transfers of ground/mesh over a Transport, for the groups of a Mesh: rank r is the
// mesh's device r.
//
// A collective is prepared once: its transfers become messages with addresses, one exchange a step, with what is to be
// copied, widened or rounded before and between. A part along a dim that is not outermost is sent and placed row by
// row, never packed. Sums of bf16 and f16 are added in f32 and rounded once.

#include <memory>

#include "execute/runtime/communicator.h"
#include "execute/runtime/transport.h"
#include "ground/mesh/mesh.h"

namespace systole {

// `transport` must outlive it. Errors: invalid when the mesh has another number of devices than the transport ranks.
Result<std::unique_ptr<Communicator>> make_communicator(Transport& transport, const Mesh& mesh);

}  // namespace systole
