#pragma once
// The layout of a value on a mesh. Per mesh axis: sharded on a dim, replicated, or partial sums. Several axes may shard
// one dim; the first axis of the mesh is then the outermost. A dim that its axes do not divide evenly is cut into parts
// of ceil(size / parts); the last parts are padded with zeros.

#include <string>
#include <vector>

#include "describe/ir/ir.h"
#include "ground/mesh/mesh.h"
#include "ground/mesh/sharding.h"

namespace systole {

struct Layout {
  static constexpr int kWhole = -1, kPartial = -2;
  std::vector<int> at;  // per axis of the mesh: a dim, kWhole or kPartial

  static Layout whole(const Mesh& mesh) { return {std::vector<int>(mesh.axes().size(), kWhole)}; }
  bool operator==(const Layout&) const = default;
  bool cut() const;      // some axis shards a dim
  bool partial() const;  // some axis holds partial sums
};

// "{data}{}{model} partial(fsdp)": one pair of braces per dim, then the axes that hold partial sums.
std::string to_string(const Layout& layout, int ndim, const Mesh& mesh);
// The sharded dims of the layout; partial sums are left out.
Sharding sharding_of(const Layout& layout, int ndim, const Mesh& mesh);

// The number of parts that the layout cuts the dim into.
std::int64_t parts_of(const Layout& layout, int dim, const Mesh& mesh);
// True if every dim is a multiple of its number of parts.
bool divides(const Type& whole, const Layout& layout, const Mesh& mesh);
// The shard of one device, padding included.
Type local_type(const Type& whole, const Layout& layout, const Mesh& mesh);
// The region of `whole` that this device holds, padding excluded; may be empty.
Shard box_of(const Shape& whole, const Layout& layout, const Mesh& mesh, const Coordinates& device);

// The layout of a slice along the outermost dim, and back. REQUIRES: no axis shards that dim.
Layout slice_layout(const Layout& stacked);
Layout stacked_layout(const Layout& slice);

}  // namespace systole
