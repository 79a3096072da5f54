#pragma once
// The cost of a piece as a function of sizes: recorded at a few sizes, exact in between.
//
// Layers enter dims as stacks of parameters, rows as the batch, and fsdp as the shard size of what ZeRO shards, each in
// proportion; what is sharded along fsdp has no rows. So every count is
//
//   a + b layers + (c + d layers) rows + (e + f layers) / fsdp
//
// Programs at the corners of a box give the six coefficients, as integers. The choice of an op's sharding
// (partition/choose.h) compares bytes, which are linear in these sizes: a choice made at both ends is made everywhere
// between them. A choice that differs shows as records of unlike structure, as dims that are neither equal at other
// rows nor in proportion to them, or as a division with a remainder. Each is an error; nothing is approximated. The law
// search-is-program compares the results with the Programs themselves.

#include <vector>

#include "ground/base/result.h"
#include "predict/plan/pieces.h"

namespace systole {

struct PieceSizes {
  std::int64_t fsdp = 1;
  std::int64_t rows = 1;    // of a microbatch on a device
  std::int64_t layers = 1;  // of the chunk
};

// Piece: ChunkPiece or AfterPiece.
template <typename Piece>
class LinearCostModel {
 public:
  struct Corner {
    PieceSizes sizes;
    Piece piece;
  };
  // `base`: one corner, or two that differ in layers. `other_rows` and `other_fsdp` are the same corners at other rows
  // and at another fsdp; empty: only the base's value is valid. Errors: unsupported: the counts are no such function.
  static Result<LinearCostModel> of(const std::vector<Corner>& base, const std::vector<Corner>& other_rows,
                                    const std::vector<Corner>& other_fsdp);
  // Whether any count depends on layers.
  bool by_layers() const {
    for (const Count& count : counts_)
      if (count.whole[1] != 0 || count.by_row[1] != 0 || count.part[1] != 0) return true;
    return false;
  }
  // Errors: unsupported: sizes between which it was not recorded.
  Result<Piece> at(const PieceSizes& sizes) const;

 private:
  struct Count {  // each: constant, and per layer
    std::int64_t whole[2], by_row[2], part[2];
  };
  Corner first_;
  std::vector<Count> counts_;
  std::vector<Count> live_;
};
extern template class LinearCostModel<ChunkPiece>;
extern template class LinearCostModel<AfterPiece>;

}  // namespace systole
