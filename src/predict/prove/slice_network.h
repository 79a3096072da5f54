#pragma once
// The torus between the chips of a TPU slice, and how long a collective takes on it.
//
// Each axis is a ring where it closes, else a line; each link carries `link` both ways at once. A gather along a ring
// sends half of the value each way round, along a line all of it one way; along several axes each carries its share.
// (jax-ml/scaling-book, "How to Think About TPUs" and "Sharded Matrices": bandwidth-bound times, and a microsecond a
// hop.) A group of devices is taken to lie along whole axes, as compilers place meshes: of several that would do, the
// fewest.

#include <cstdint>
#include <string>
#include <vector>

#include "ground/base/units.h"

namespace systole::prove {

struct SliceNetwork {
  struct Axis {
    std::int64_t chips = 1;
    bool closes = false;  // its last chip is the first one's neighbour
    bool operator==(const Axis&) const = default;
  };
  std::vector<Axis> axes;
  std::int64_t devices_per_chip = 1;  // they share the chip's links
  BytesPerSecond link{};              // one link, one direction
  Seconds hop{};                      // from a chip to its neighbour
};

// All of it, as text: what a proof depends on.
std::string to_string(const SliceNetwork& network);

// `bytes`: the whole value, as all of its group together have it (CompiledCollective); of an all_to_all and of a
// collective_permute what one device holds. `group`: devices that take part, 0 for all of them. A kind that is not
// known is taken for a gather.
Seconds collective_time(const SliceNetwork& network, const std::string& kind, Bytes bytes, std::int64_t group);

}  // namespace systole::prove
