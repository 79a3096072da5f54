#pragma once
// A piece of a step as a function of sizes: recorded at a few of them, and exact between.
//
// Layers enter dims as stacks of parameters, rows as the batch, fsdp as what is stored in parts, each in proportion,
// and what is stored in parts has no rows. So every count is
//
//   a + b layers + (c + d layers) rows + (e + f layers) / fsdp
//
// Programs at corners of a box give the six, as integers. How ops are cut (partition/choose.h) goes by comparing bytes,
// which are linear in these sizes: a choice that is made at both ends is made between them. A choice that is turned
// round shows as records of unlike structure, as dims that are neither the same with other rows nor in proportion to
// them, or as a division with a rest, and is an error: nothing is approximated. The law search-is-program compares what
// comes out with the Programs themselves.

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
class Sized {
 public:
  struct Corner {
    PieceSizes sizes;
    Piece piece;
  };
  // `base`: one, or two that differ in layers. The others are the same with other rows and with another fsdp; empty: of
  // the base's alone. Errors: unsupported: what is recorded is not such a function.
  static Result<Sized> of(const std::vector<Corner>& base, const std::vector<Corner>& other_rows,
                          const std::vector<Corner>& other_fsdp);
  // Whether any count goes with layers.
  bool by_layers() const {
    for (const Count& count : counts_)
      if (count.whole[1] != 0 || count.by_row[1] != 0 || count.part[1] != 0) return true;
    return false;
  }
  // Errors: unsupported: sizes between which it was not recorded.
  Result<Piece> at(const PieceSizes& sizes) const;

 private:
  struct Count {  // each: once, and by layer
    std::int64_t whole[2], by_row[2], part[2];
  };
  Corner first_;
  std::vector<Count> counts_;
  std::vector<Count> live_;
};
extern template class Sized<ChunkPiece>;
extern template class Sized<AfterPiece>;

}  // namespace systole
