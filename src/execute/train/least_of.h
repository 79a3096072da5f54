#pragma once
// What ranks find out together.

#include <cstdint>

#include "execute/runtime/communicator.h"
#include "ground/mesh/mesh.h"

namespace systole {

// The least of what the ranks of the mesh say, each its own number: one all_reduce. Errors: those of collectives.
Result<std::int64_t> least_of(std::int64_t mine, Communicator& ranks, const Mesh& mesh);

}  // namespace systole
