#pragma once
// The torus that connects the chips of a TPU slice, and the time of a collective on it.
//
// An axis is a ring if it closes, else a line. Each link carries `link` in both directions at once. An all-gather along
// a ring sends half of the value each way round; along a line it sends all of it one way; along several axes each
// carries its share. (jax-ml/scaling-book, "How to Think About TPUs" and "Sharded Matrices": bandwidth-bound times, and
// a microsecond per hop.) A group of devices is assumed to lie along whole axes, as compilers place meshes: along as
// few as possible.

#include <cstdint>
#include <string>
#include <vector>

#include "ground/base/units.h"

namespace systole::prove {

struct SliceNetwork {
  struct Axis {
    std::int64_t chips = 1;
    bool closes = false;  // its last chip is connected to its first
    bool operator==(const Axis&) const = default;
  };
  std::vector<Axis> axes;
  std::int64_t devices_per_chip = 1;  // they share the chip's links
  BytesPerSecond link{};              // one link, one direction
  Seconds hop{};                      // from a chip to its neighbour
};

// The whole network as text, for the keys of proofs.
std::string to_string(const SliceNetwork& network);

// `bytes`: the whole value, across its group (CompiledCollective); for all_to_all and collective_permute what one
// device holds. `group`: devices that take part, 0: all of them. An unknown kind is treated as an all-gather.
Seconds collective_time(const SliceNetwork& network, const std::string& kind, Bytes bytes, std::int64_t group);

}  // namespace systole::prove
