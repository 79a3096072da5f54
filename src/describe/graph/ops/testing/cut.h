#pragma once
// For tests: whole tensors cut as a layout says, and put together again.

#include "describe/graph/ops/testing/fake_mesh.h"
#include "describe/graph/partition/layout.h"

namespace systole {

FakeMesh fake(const Mesh& mesh);

// The device's part, zeros where it is filled up. Of terms of a sum: the whole on the first device of the axis, zeros
// on the others.
HostTensor cut(const HostTensor& whole, const Layout& layout, const Mesh& mesh, std::int64_t device);
// The inverse. Errors: Failure(internal) when devices that should hold the same do not, to the bit.
HostTensor uncut(std::span<const HostTensor> parts, const Shape& whole, const Layout& layout, const Mesh& mesh);

}  // namespace systole
