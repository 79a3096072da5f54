#pragma once
// Batches of rows, made ahead of the consumer by one thread into staging that is allocated once.
//
// A batch of B rows of T positions, all i32 [B, T], row-major:
//   tokens     what the model reads: bos, then the piece's tokens but the last; 0 in padding
//   labels     what it predicts: the piece's tokens; -1 (ignored) in padding
//   segments   1, 2, .. for the row's pieces; 0 in padding; attention stays within one number
//   positions  0, 1, .. from each piece's start; 0 in padding
// With masking, rows of the same pieces for a masked language model:
//   tokens     the piece's tokens themselves, some of them masked (masking.h)
//   labels     what was there, where it is to be told; -1 elsewhere
//   types      0: of which of a pair of sentences
// With a target length, rows of pairs (encode.h), one each, T = S + that length:
//   tokens, segments                        [B, S]: the input, its last token eos; 1 where there is one
//   target_tokens, labels, target_segments  [B, target length]: kTargetStart and the target but its last; the target,
//                                           its last token eos
// packing.h says why nothing is skipped. `endless` goes through the epochs in a keyed order (row_order.h), batches
// reaching over an epoch's end; `once` gives the rows as they stand, the last batch filled up with empty rows, and
// ends.
//
// Several readers may share one PackedTokens. A reader is one consumer's; its own thread stays within it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "execute/data/masking.h"
#include "execute/data/packing.h"
#include "execute/data/row_order.h"
#include "execute/data/token_shard.h"
#include "ground/base/clock.h"

namespace systole {

// What rows are made of: open shards in their order, and the table over them.
struct PackedTokens {
  std::vector<TokenShard> shards;
  Packing packing;
  std::int32_t bos = 1;
  Bytes resident() const;
};

// The place of the next row not yet given, in the order of the epoch. Saved with a checkpoint, it resumes exactly.
struct RowCursor {
  std::int64_t epoch = 0, row = 0;
  auto operator<=>(const RowCursor&) const = default;
};

// What a row of targets begins with, in place of the token before: 0, which no text becomes.
constexpr std::int32_t kTargetStart = 0;

enum class RowPass { endless, once };

struct RowReaderOptions {
  std::int64_t batch_rows = 1;     // B, of this reader's batches
  std::int64_t step_rows = 0;      // rows of a step over all readers; 0: B
  std::int64_t first_row = 0;      // where this reader's rows begin within a step's: rank x B
  std::int64_t queue_batches = 3;  // staging slots: one at the consumer, the others made ahead; at least 2
  RowPass pass = RowPass::endless;
  std::uint64_t seed = 0;  // of the order, when endless
  std::optional<Masking> masking;
  std::int64_t target_length = 0;  // above 0: rows of pairs; their packing is padded, never packed
  Clock* clock = nullptr;          // borrowed; required
  // Called on the reader's thread before each batch is made, with its number since the start: tests inject stalls and
  // failures here (by throwing Failure).
  std::function<void(std::int64_t)> before_batch;
};

struct Batch {
  std::span<const std::int32_t> tokens, labels, segments, positions;    // [B, T]
  std::span<const std::int32_t> types, target_tokens, target_segments;  // empty but where rows have them
  std::int64_t label_count = 0;                                         // labels that are not -1
  std::int64_t bytes = 0;  // of text that the labels stand for, all of it; 0 for masked rows and pairs
  std::int64_t rows = 0;   // that are not filled up
  RowCursor next;          // where the following batch starts
};

struct RowReaderStats {
  Seconds waited;            // the consumer, in next(), for the thread
  std::int64_t waits = 0;    // batches that were not ready when asked for
  std::int64_t batches = 0;  // given
  Seconds reading;           // the thread, making batches (before_batch excluded)
};

class RowReader {
 public:
  // REQUIRES: rows in the table, a clock, 2 or more slots, a step that holds this reader's rows.
  // Errors: invalid when the cursor lies outside the rows.
  static Result<RowReader> open(std::shared_ptr<const PackedTokens> data, RowReaderOptions options,
                                RowCursor start = {});
  ~RowReader();  // stops and joins the thread
  RowReader(RowReader&&) noexcept;

  // The next batch, valid until the next call; nullptr after the last of a single pass. What went wrong on the thread
  // comes here, after the batches made before it. Errors: io, corrupt, and whatever before_batch threw.
  Result<const Batch*> next();
  RowCursor cursor() const;  // where the batch after the last one given starts
  RowReaderStats stats() const;

  // The bytes a reader takes: staging and scratch; the tables (PackedTokens::resident) are counted once, by their
  // owner.
  static Bytes planned(const Packing& packing, const RowReaderOptions& options);
  Bytes allocated() const;  // what it took; equal to planned

 private:
  class Maker;
  class Queue;
  explicit RowReader(std::unique_ptr<Queue> queue);
  std::unique_ptr<Queue> queue_;
};

}  // namespace systole
