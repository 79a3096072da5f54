#pragma once
// Prefetching of batches: threads make batches ahead of the consumer, in staging buffers that are allocated once. A
// batch is made by one thread, out of its cursor alone; so neither order nor bits depend on the number of threads.
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
// With buckets (a bucketed packing, endless) each batch is of one of them: [B_e, e], e the bucket's edge and
// B_e = B x floor(T / e), in the order of bucket_order.h; no batch crosses an epoch's end. `once` knows no buckets.
//
// Several readers may share one PackedTokens. A reader serves one consumer; its own threads are internal.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "execute/data/masking.h"
#include "execute/data/mixture_order.h"
#include "execute/data/packing.h"
#include "execute/data/row_order.h"
#include "execute/data/token_shard.h"
#include "ground/base/clock.h"

namespace systole {

// The source of rows: open shards in order, and the packing table over them.
struct PackedTokens {
  std::vector<TokenShard> shards;
  Packing packing;
  std::int32_t bos = 1;
  Bytes resident() const;
};

// The position of the next row to give, in the epoch's order. With buckets, `row` counts steps of the epoch instead.
// Saved with a checkpoint, it resumes exactly.
struct RowCursor {
  std::int64_t epoch = 0, row = 0;
  auto operator<=>(const RowCursor&) const = default;
};

// The first token of a row of targets, in place of a previous one: 0, which no text is encoded to.
constexpr std::int32_t kTargetStart = 0;

enum class RowPass { endless, once };

struct RowReaderOptions {
  std::int64_t batch_rows = 1;     // B, the batch size of this reader; with buckets, at length T
  std::int64_t step_rows = 0;      // rows of a step over all readers; 0: B
  std::int64_t first_row = 0;      // index of this reader's first row within a step: rank x B
  std::int64_t queue_batches = 3;  // staging slots, at least 2: one for the consumer, the others prefetched
  std::int64_t readers = 1;        // threads that make batches
  RowPass pass = RowPass::endless;
  std::uint64_t seed = 0;  // for the order, if endless
  // If the rows are of several sources, their order, if endless: row r of epoch e is at position e x rows + r of it.
  std::shared_ptr<const MixtureOrder> mixture = {};
  // If endless: rows at an epoch's end (with buckets: of each bucket) that do not fill a step are left out, so that no
  // step crosses epochs. Of one source only.
  bool drop_remainder = false;
  std::optional<Masking> masking;
  // If once, the rows in this order in place of all rows as stored; below 0: an empty row.
  std::shared_ptr<const std::vector<std::int64_t>> once_rows = {};
  std::int64_t target_length = 0;  // above 0: rows of pairs; their packing is padded
  Clock* clock = nullptr;          // borrowed; null: no stage is timed
  // Called on the thread that makes a batch before it does, with the batch's number since the start; from several
  // threads at once if there are several. Tests inject stalls and failures here (by throwing Failure).
  std::function<void(std::int64_t)> before_batch;

  std::int64_t rows_of_step() const { return step_rows > 0 ? step_rows : batch_rows; }
};

// Time of making a batch, or of waiting for one, by what the thread did. Zero without a clock.
struct RowStages {
  Seconds held;  // in before_batch
  Seconds read;  // blocks of shards, and their checksums
  Seconds pack;  // rows out of tokens
  Seconds total() const { return held + read + pack; }
};

struct Batch {
  std::span<const std::int32_t> tokens, labels, segments, positions;    // [B, T]
  std::span<const std::int32_t> types, target_tokens, target_segments;  // empty if the rows have none
  std::int64_t label_count = 0;                                         // labels that are not -1
  std::int64_t bytes = 0;                   // bytes of text that the labels stand for; 0 for masked rows and pairs
  std::int64_t rows = 0;                    // rows with data; the others are empty
  std::int64_t batch_rows = 0, length = 0;  // the arrays are [batch_rows, length]; of pairs: the input's
  RowCursor next;                           // where the following batch starts
  RowStages made;
};

class RowReader {
 public:
  // REQUIRES: at least one row and one thread, 2 or more slots, a step that contains this reader's rows.
  // Errors: invalid if the cursor is outside the rows; those of fills_steps.
  static Result<RowReader> open(std::shared_ptr<const PackedTokens> data, RowReaderOptions options,
                                RowCursor start = {});
  ~RowReader();  // stops and joins the threads
  RowReader(RowReader&&) noexcept;

  // The next batch, valid until the next call; nullptr after the last of `once`. A failure of a thread is returned
  // here, after the batches made before it. Errors: io, corrupt, and whatever before_batch threw; invalid if the rest
  // of a mixture is shorter than a step.
  Result<const Batch*> next();
  RowCursor cursor() const;  // start of the batch after the last one given
  RowStages waits() const;   // what the consumer waited for, so far

  // With drop_remainder, rows that fill no step are left out. Errors: invalid: that is all rows, of the data or of a
  // bucket, which would never be trained on.
  static Status fills_steps(const Packing& packing, const RowReaderOptions& options);

  // Values that a cursor's `row` takes in an epoch: its rows; with buckets, its steps.
  static std::int64_t positions(const Packing& packing, const RowReaderOptions& options);
  // Names the order of steps (BucketOrder::name_of) that a cursor counts in; nothing: it counts rows.
  static std::optional<std::string> order_of(const Packing& packing, const RowReaderOptions& options);

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
