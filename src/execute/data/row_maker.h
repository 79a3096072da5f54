#pragma once
// Makes batches, on one of the reader's threads. Private to rows.

#include "execute/data/bucket_order.h"
#include "execute/data/rows.h"

namespace systole {

class RowReader::Maker {
 public:
  Maker(std::shared_ptr<const PackedTokens> data, const RowReaderOptions& options);

  static bool bucketed(const Packing& packing, const RowReaderOptions& options) {
    return packing.policy == PackingPolicy::bucketed && options.pass == RowPass::endless;
  }
  // The order of steps; nothing if not bucketed.
  static std::optional<BucketOrder> steps_of(const Packing& packing, const RowReaderOptions& options);

  // The number of i32 in the staging buffer of one batch; with buckets, of the largest.
  static std::int64_t slot_size(const Packing& packing, const RowReaderOptions& options);
  // Makes the batch that starts at `cursor` in `staging`, of slot_size; allocates nothing.
  // REQUIRES: !ended(cursor). Errors: io, corrupt.
  Result<Batch> make(RowCursor cursor, std::span<std::int32_t> staging);
  RowCursor after(RowCursor cursor) const;  // where the batch after the one at `cursor` starts
  bool ended(RowCursor cursor) const;
  Seconds now() const { return options_.clock == nullptr ? Seconds() : options_.clock->now(); }

 private:
  using Numbers = std::span<std::int32_t>;
  // Parts of the staging buffer: of all rows, or of one.
  struct Parts {
    Numbers tokens, labels, segments, positions, types, target_tokens, target_segments;
    Numbers pair;  // one pair, as stored in the shard
  };
  struct Place {
    std::int64_t epoch, row;  // row: index in the epoch's order; with buckets, the stored row
  };
  struct Shape {
    std::int64_t rows, length;  // of a batch
  };
  Parts parts_of(Numbers staging, Shape shape) const;
  static Parts row_of(const Parts& all, std::int64_t rows, std::int64_t row);
  bool mixed() const { return options_.mixture != nullptr && options_.pass == RowPass::endless; }
  bool chosen() const { return options_.once_rows != nullptr && options_.pass == RowPass::once; }
  Status lasts(RowCursor cursor) const;        // a mixture has the rows of a step from here on
  std::int64_t length() const;                 // rows of a pass
  std::int64_t stored_row(Place place) const;  // below 0: an empty row
  Status fill_rows(RowCursor cursor, const Parts& parts, Batch& batch);
  Status fill_step(std::int64_t epoch, const BucketOrder::Step& step, const Parts& parts, Batch& batch);
  Status fill_row(Place place, std::int64_t stored, const Parts& row, Batch& batch);
  Status fill_pieces(std::span<const Piece> pieces, const Parts& row, Batch& batch);
  Status fill_pair(const Piece& piece, const Parts& row, Batch& batch);
  void mask(Place place, const Parts& row, Batch& batch) const;
  Status read_tokens(std::uint64_t first, std::span<std::int32_t> into);

  std::shared_ptr<const PackedTokens> data_;
  RowReaderOptions options_;
  RowOrder order_;
  std::optional<BucketOrder> steps_;  // with buckets, in place of order_
  std::vector<std::byte> scratch_;
  Seconds reading_;  // for the batch that is being made
};

}  // namespace systole
