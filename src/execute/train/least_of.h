#pragma once
// The minimum over ranks.

#include <cstdint>

#include "execute/runtime/communicator.h"
#include "ground/mesh/mesh.h"

namespace systole {

// The minimum of `mine` over the ranks of the mesh, by one all_reduce. Errors: those of collectives.
Result<std::int64_t> least_of(std::int64_t mine, Communicator& ranks, const Mesh& mesh);

}  // namespace systole
