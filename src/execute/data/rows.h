#pragma once
// Prefetching of batches: one thread makes batches ahead of the consumer, in staging buffers that are allocated once.
//
// A batch of B rows of T positions, all i32 [B, T], row-major:
//   tokens     the model's input: bos, then the piece's tokens but the last; 0 in padding
//   labels     its targets: the piece's tokens; -1 (ignored) in padding
//   segments   1, 2, .. for the row's pieces; 0 in padding; attention stays within equal segments
//   positions  0, 1, .. from each piece's start; 0 in padding
// With masking, rows of the same pieces for a masked language model:
//   tokens     the piece's tokens themselves, some of them masked (masking.h)
//   labels     the original token where it is to be predicted; -1 elsewhere
//   types      0: the token type (first or second sentence of a pair)
// With a target length, rows of one pair each (encode.h), T = S + that length:
//   tokens, segments                        [B, S]: the input, its last token eos; 1 on its tokens
//   target_tokens, labels, target_segments  [B, target length]: kTargetStart and the target but its last; the target,
//                                           its last token eos
// packing.h explains why no token is skipped. `endless` repeats epochs in a keyed order (row_order.h); batches may
// cross an epoch's end. `once` gives the rows in stored order, fills the last batch up with empty rows, and ends.
//
// Several readers may share one PackedTokens. A reader serves one consumer; its own thread is internal.

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

namespace systole {

// The source of rows: open shards in order, and the packing table over them.
struct PackedTokens {
  std::vector<TokenShard> shards;
  Packing packing;
  std::int32_t bos = 1;
  Bytes resident() const;
};

// The position of the next row to give, in the epoch's order. Saved with a checkpoint, it resumes exactly.
struct RowCursor {
  std::int64_t epoch = 0, row = 0;
  auto operator<=>(const RowCursor&) const = default;
};

// The first token of a row of targets, in place of a previous one: 0, which no text is encoded to.
constexpr std::int32_t kTargetStart = 0;

enum class RowPass { endless, once };

struct RowReaderOptions {
  std::int64_t batch_rows = 1;     // B, the batch size of this reader
  std::int64_t step_rows = 0;      // rows of a step over all readers; 0: B
  std::int64_t first_row = 0;      // index of this reader's first row within a step: rank x B
  std::int64_t queue_batches = 3;  // staging slots, at least 2: one for the consumer, the others prefetched
  RowPass pass = RowPass::endless;
  std::uint64_t seed = 0;  // for the order, if endless
  std::optional<Masking> masking;
  std::int64_t target_length = 0;  // above 0: rows of pairs; their packing is padded
  // Called on the reader's thread before each batch, with its number since the start. Tests inject stalls and failures
  // here (by throwing Failure).
  std::function<void(std::int64_t)> before_batch;
};

struct Batch {
  std::span<const std::int32_t> tokens, labels, segments, positions;    // [B, T]
  std::span<const std::int32_t> types, target_tokens, target_segments;  // empty if the rows have none
  std::int64_t label_count = 0;                                         // labels that are not -1
  std::int64_t bytes = 0;  // bytes of text that the labels stand for; 0 for masked rows and pairs
  std::int64_t rows = 0;   // rows with data; the others are empty
  RowCursor next;          // where the following batch starts
};

class RowReader {
 public:
  // REQUIRES: at least one row, 2 or more slots, a step that contains this reader's rows.
  // Errors: invalid if the cursor is outside the rows.
  static Result<RowReader> open(std::shared_ptr<const PackedTokens> data, RowReaderOptions options,
                                RowCursor start = {});
  ~RowReader();  // stops and joins the thread
  RowReader(RowReader&&) noexcept;

  // The next batch, valid until the next call; nullptr after the last of `once`. A failure of the thread is returned
  // here, after the batches made before it. Errors: io, corrupt, and whatever before_batch threw.
  Result<const Batch*> next();
  RowCursor cursor() const;  // start of the batch after the last one given

  // The bytes of a reader: staging and scratch. The tables (PackedTokens::resident) are counted once, by their owner.
  static Bytes planned(const Packing& packing, const RowReaderOptions& options);
  Bytes allocated() const;  // actual bytes; equal to planned

 private:
  class Maker;
  class Queue;
  explicit RowReader(std::unique_ptr<Queue> queue);
  std::unique_ptr<Queue> queue_;
};

}  // namespace systole
