#pragma once
// For tests: shards whole tensors by a layout, and assembles them again.

#include "describe/ops/testing/fake_mesh.h"
#include "describe/program/layout.h"

namespace systole {

FakeMesh fake(const Mesh& mesh);

// The device's shard, with zeros as padding. For partial sums: the whole on the first device of the axis, zeros on the
// others.
HostTensor cut(const HostTensor& whole, const Layout& layout, const Mesh& mesh, std::int64_t device);
// The inverse; adds partial sums. Errors: Failure(internal) when replicas differ in a bit.
HostTensor uncut(std::span<const HostTensor> parts, const Shape& whole, const Layout& layout, const Mesh& mesh);

}  // namespace systole
