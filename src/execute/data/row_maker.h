#pragma once
// Fills one batch: what the reader's thread does. Private to rows.

#include "execute/data/rows.h"

namespace systole {

class RowReader::Maker {
 public:
  Maker(std::shared_ptr<const PackedTokens> data, const RowReaderOptions& options);

  // The number of i32 in one batch's staging.
  static std::int64_t slot_size(const Packing& packing, const RowReaderOptions& options);
  // The batch that starts at `cursor`, into `staging` of slot_size; allocates nothing.
  // REQUIRES: !ended(cursor). Errors: io, corrupt.
  Result<Batch> make(RowCursor cursor, std::span<std::int32_t> staging);
  bool ended(RowCursor cursor) const;

 private:
  Status fill_row(std::int64_t row, std::int64_t place, std::span<std::int32_t> staging, Batch& batch);
  Status read_tokens(std::uint64_t first, std::span<std::int32_t> into);
  std::int64_t step_rows() const { return options_.step_rows > 0 ? options_.step_rows : options_.batch_rows; }

  std::shared_ptr<const PackedTokens> data_;
  RowReaderOptions options_;
  RowOrder order_;
  std::vector<std::byte> scratch_;
};

}  // namespace systole
