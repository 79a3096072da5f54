#pragma once
// A collective as a value, and its algorithms as pure functions that return its list of transfers. A transport executes
// the list, the cost model prices it, the byte law counts its bytes; none of them derives it again.
//
// The n = product of axis_sizes ranks of a group are numbered 0..n-1. `bytes` is the size of the whole tensor. It is
// divided into n chunks of whole grains, as equal as possible: chunk i is grains [i·G/n, (i+1)·G/n) of G = bytes/grain.
//
//   kind                a rank begins with      and ends with
//   all_reduce          the whole               the sum of all ranks' tensors
//   reduce_scatter      the whole               the sum in its own chunk; its other chunks are undefined
//   all_gather          its own chunk           the whole
//   all_to_all          the whole               in chunk s: rank s's chunk with this rank's number, in a second buffer
//   collective_permute  the whole               the whole of the rank `by` before it (modulo n), in a second buffer
//   broadcast           rank 0: the whole       the whole of rank 0
//
// all_to_all and collective_permute receive into a second buffer; all_to_all needs chunks of equal size. The transfers
// of one step are simultaneous: each reads what its sender held before the step. No two transfers of a step overwrite
// the same place, but several may add to it, in list order.
//
//   direct        all pairs in one step; all_reduce: sums to their owners, then from their owners
//   hierarchical  over two axes (more: the first, and the others as one): sums within the inner axis, then across the
//                 outer axis between ranks of the same inner index, and back. So slow outer links carry each byte once.
//                 One axis: direct
//
// Ring: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
// Halving and doubling: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
// 2005, with its fold for numbers of ranks that are not a power of two.

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

// The algorithms for `kind`, the default first.
std::vector<CollectiveAlgorithm> algorithms_of(CollectiveKind kind);

struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<std::int64_t> axis_sizes;  // of the collective's mesh axes, outermost first
  Bytes bytes{};
  Bytes grain{1};       // size of an element: chunks do not split elements
  std::int64_t by = 1;  // the shift of collective_permute, positive or negative
  std::int64_t num_ranks() const;
};

// One message.
struct Transfer {
  int step = 0;
  std::int32_t from = 0, to = 0;
  Bytes bytes{};
  bool reduce = false;               // the receiver adds it to its data; otherwise overwrites
  Bytes from_offset{}, to_offset{};  // in the sender's and the receiver's buffer
  bool operator==(const Transfer&) const = default;
};

// Ordered by step, then sender, then place. Empty transfers are left out. A single rank sends nothing.
// Errors: unsupported if the algorithm does not implement the kind (the hint names those that do); invalid if bytes are
// negative or not a whole number of grains, or for all_to_all not divisible into equal chunks.
Result<std::vector<Transfer>> transfers_of(const Collective& collective, CollectiveAlgorithm algorithm);

// The byte range of chunk `i`.
struct ByteSpan {
  Bytes begin{}, end{};
};
ByteSpan chunk_of(const Collective& collective, std::int64_t i);

// The bytes that the rank sends.
Bytes bytes_sent(const std::vector<Transfer>& transfers, std::int32_t rank);
// The same. Closed form for ring and direct, so that thousands of ranks cost no more than two; other algorithms build
// the list.
// Errors: as transfers_of.
Result<Bytes> bytes_sent(const Collective& collective, CollectiveAlgorithm algorithm, std::int32_t rank);

}  // namespace systole
