#pragma once
// Resharding: the moves that take a value from one layout to another. The bytes that they send depend on shapes only,
// so the cheaper of two ways is chosen before either is built.

#include <functional>
#include <span>
#include <vector>

#include "describe/program/layout.h"

namespace systole {

struct Move {
  enum class Kind {
    all_reduce,
    reduce_scatter,
    all_gather,
    all_to_all,
    take_part,   // keeps this device's shard; sends nothing
    keep_first,  // replicated to partial sums: zeros on all devices but the first; sends nothing
    pad,         // pads `dim` with zeros to `size`
    trim,        // trims `dim` to `size`
  } kind = Kind::all_reduce;
  int axis = -1;          // of the mesh
  int dim = -1;           // that is split, grown, padded or trimmed
  int from_dim = -1;      // all_to_all: the dim that grows
  std::int64_t size = 0;  // pad, trim
};

// REQUIRES: layouts have one entry per mesh axis. Errors: Failure(internal) when the layouts do not fit the type.
std::vector<Move> moves_between(const Type& whole, const Layout& from, const Layout& to, const Mesh& mesh);
// Adds the moves to the value's graph. `coordinate` gives this device's place on an axis, an i64[] of that graph; it is
// not called for a shard of a constant, which is a constant.
Value build_moves(Value value, std::span<const Move> moves, const Mesh& mesh,
                  const std::function<Value(int axis)>& coordinate);

}  // namespace systole
