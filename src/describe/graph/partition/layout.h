#pragma once
// How a value lies on a mesh: for each axis, the dim that the axis cuts, or that every device has the whole, or that
// the devices hold the terms of a sum. A dim that several axes cut is cut by the first axis of the mesh outermost. A
// dim that its axes do not divide is cut into parts of ceil(size / parts), the last ones filled up with zeros.
//
// Between two layouts lies a list of moves; what they send is a figure of shapes only, so that the cheaper of two ways
// can be chosen before either is built.

#include <functional>
#include <string>
#include <vector>

#include "describe/graph/ir.h"
#include "ground/mesh/mesh.h"
#include "ground/mesh/sharding.h"

namespace systole {

struct Layout {
  static constexpr int kWhole = -1, kPartial = -2;
  std::vector<int> at;  // per axis of the mesh: a dim, kWhole or kPartial

  static Layout whole(const Mesh& mesh) { return {std::vector<int>(mesh.axes().size(), kWhole)}; }
  bool operator==(const Layout&) const = default;
  bool cut() const;      // some axis cuts a dim
  bool partial() const;  // some axis holds terms of a sum
};

// "{data}{}{model}", and " partial(fsdp)" where devices hold terms of a sum; braces a dim.
std::string to_string(const Layout& layout, int ndim, const Mesh& mesh);
// The cuts of the layout; terms of a sum are not its matter.
Sharding sharding_of(const Layout& layout, int ndim, const Mesh& mesh);

// In how many parts the layout cuts the dim.
std::int64_t parts_of(const Layout& layout, int dim, const Mesh& mesh);
// Every dim is divided without a rest.
bool divides(const Type& whole, const Layout& layout, const Mesh& mesh);
// What one device holds, filled up where the cut leaves a rest.
Type local_type(const Type& whole, const Layout& layout, const Mesh& mesh);
// Of which the device with these coordinates holds this: without what is filled up; may be empty.
Shard box_of(const Shape& whole, const Layout& layout, const Mesh& mesh, const Coordinates& device);

// The layout of a slice along the outermost dim, which no axis cuts; and back.
Layout slice_layout(const Layout& stacked);
Layout stacked_layout(const Layout& slice);

struct Move {
  enum class Kind {
    all_reduce,
    reduce_scatter,
    all_gather,
    all_to_all,
    take_part,   // keeps this device's part: sends nothing
    keep_first,  // zeros on all devices but the first: a whole as terms of a sum; sends nothing
    pad,         // `dim` to `size`, zeros behind
    trim,        // `dim` to `size`
  } kind = Kind::all_reduce;
  int axis = -1;          // of the mesh
  int dim = -1;           // that is cut, grown, padded
  int from_dim = -1;      // of all_to_all: that is grown
  std::int64_t size = 0;  // of pad and trim
};

// REQUIRES: layouts of as many axes as the mesh has. Errors: Failure(internal) when the layouts are not of the type.
std::vector<Move> moves_between(const Type& whole, const Layout& from, const Layout& to, const Mesh& mesh);
// Bytes that one device sends, at the least that the collectives' algorithms send; as a real number, for comparing.
double bytes_sent(const Type& whole, const Layout& from, std::span<const Move> moves, const Mesh& mesh);
// Builds them. `coordinate` gives this device's place on an axis, an i64[] of the value's graph; the parts of a
// constant are a constant and need none.
Value build_moves(Value value, std::span<const Move> moves, const Mesh& mesh,
                  const std::function<Value(int axis)>& coordinate);

}  // namespace systole
