#pragma once
// A collective as a value, and its algorithms as pure functions: the list of transfers that carry it out. A transport
// plays the list, the cost model prices it, the simulator animates it, the byte law counts it: none re-derives it.
//
// The n = product of axis_sizes ranks of one group are numbered 0..n-1. `bytes` is the size of the whole tensor, cut
// into n chunks of whole grains, as even as can be: chunk i is grains [i·G/n, (i+1)·G/n) of G = bytes / grain.
//
//   kind                a rank begins with      and ends with
//   all_reduce          the whole               the sum of all ranks' wholes
//   reduce_scatter      the whole               the sum in its own chunk; its other chunks are spent
//   all_gather          its own chunk           the whole
//   all_to_all          the whole               in chunk s: rank s's chunk of its own number, in a buffer of its own
//   collective_permute  the whole               the whole of the rank `by` before it, round the end, in a buffer of its
//   own broadcast           rank 0: the whole       the whole of rank 0
//
// all_to_all puts what it receives into a second buffer and needs all chunks of one size. The transfers of one step
// happen at once: each reads what its sender held before the step, and no two write one place; but several may be added
// to it, in the order of the list.
//
//   direct        everyone to everyone in one step; all_reduce: sums to their owners, then from their owners
//   hierarchical  over two axes (more: the first, and the others as one): sums within the inner axis, among those of
//   one
//                 place over the outer axis, and back, so that slow outer links carry each byte once. One axis: direct
//
// Ring: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
// Halving and doubling: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", 2005, with its fold for ranks beyond the power of two.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

enum class CollectiveKind { all_reduce, reduce_scatter, all_gather, all_to_all, collective_permute, broadcast };
enum class CollectiveAlgorithm { ring, recursive_halving_doubling, direct, binomial_tree, hierarchical };

const char* name_of(CollectiveKind kind);            // "all_reduce"
const char* name_of(CollectiveAlgorithm algorithm);  // "recursive_halving_doubling"
std::optional<CollectiveKind> collective_named(std::string_view name);
std::optional<CollectiveAlgorithm> collective_algorithm_named(std::string_view name);

// The algorithms that carry out `kind`, the usual one first.
std::vector<CollectiveAlgorithm> algorithms_of(CollectiveKind kind);

struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<std::int64_t> axis_sizes;  // of the mesh axes it runs over, outermost first
  Bytes bytes{};
  Bytes grain{1};       // size of an element: no chunk cuts one
  std::int64_t by = 1;  // of collective_permute, of either sign
  std::int64_t num_ranks() const;
};

// One message.
struct Transfer {
  int step = 0;
  std::int32_t from = 0, to = 0;
  Bytes bytes{};
  bool reduce = false;               // the receiver combines it with what it holds, else it takes its place
  Bytes from_offset{}, to_offset{};  // in the sender's and the receiver's buffer
  bool operator==(const Transfer&) const = default;
};

// In order of step, then sender, then place. A transfer without bytes is left out. One rank alone sends nothing.
// Errors: unsupported when the algorithm does not carry out the kind (the hint names those that do); invalid when bytes
// are no whole number of grains, negative, or for all_to_all no whole number of equal chunks.
Result<std::vector<Transfer>> transfers_of(const Collective& collective, CollectiveAlgorithm algorithm);

// Where chunk `i` begins and ends, in bytes.
struct ByteSpan {
  Bytes begin{}, end{};
};
ByteSpan chunk_of(const Collective& collective, std::int64_t i);

// Bytes that the rank sends.
Bytes bytes_sent(const std::vector<Transfer>& transfers, std::int32_t rank);
// The same without the list, for all but halving and doubling: thousands of ranks cost no more than two.
// Errors: as transfers_of.
Result<Bytes> bytes_sent(const Collective& collective, CollectiveAlgorithm algorithm, std::int32_t rank);

}  // namespace systole
