#include "execute/data/rows.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "describe/lengths/bucket_edges.h"
#include "execute/data/row_maker.h"
#include "ground/base/counted.h"

namespace systole {

Bytes PackedTokens::resident() const {
  Bytes bytes = packing.resident();
  for (const TokenShard& shard : shards) bytes += shard.resident();
  return bytes;
}

// A ring of slots between the threads and one consumer. Batches are numbered; threads claim the numbers in order, and a
// number has its slot. The consumer holds the slot before `given` until its next call.
class RowReader::Queue {
 public:
  Queue(std::shared_ptr<const PackedTokens> data, RowReaderOptions options, RowCursor start)
      : options_(std::move(options)),
        batches_(slots()),
        ready_(slots()),
        claim_(start),
        cursor_(start),
        slot_size_(static_cast<std::size_t>(Maker::slot_size(data->packing, options_))),
        staging_(slots() * slot_size_) {
    const auto readers = static_cast<std::size_t>(options_.readers);
    makers_.reserve(readers);
    for (std::size_t i = 0; i < readers; ++i) makers_.emplace_back(data, options_);
    for (Maker& maker : makers_) threads_.emplace_back([this, &maker] { run(maker); });
  }

  ~Queue() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Result<const Batch*> next() {
    std::unique_lock lock(mutex_);
    holding_ = false;
    changed_.notify_all();
    const auto failed = [&] { return error_ && failed_ == given_; };
    const auto came = [&] { return ready_[slot(given_)] || failed() || (ended_ && given_ == claimed_); };
    const bool late = !came();
    const Seconds began = late ? makers_[0].now() : Seconds();
    if (late) changed_.wait(lock, came);
    if (!ready_[slot(given_)]) {
      if (failed()) return *error_;
      return static_cast<const Batch*>(nullptr);
    }
    ready_[slot(given_)] = false;
    const Batch& batch = batches_[slot(given_++)];
    if (late) count_wait(batch.made, makers_[0].now() - began);
    holding_ = true;
    cursor_ = batch.next;
    return &batch;
  }

  RowCursor cursor() const {
    const std::lock_guard lock(mutex_);
    return cursor_;
  }
  RowStages waits() const {
    const std::lock_guard lock(mutex_);
    return waits_;
  }
  Bytes allocated() const {
    return Bytes(
        static_cast<std::int64_t>(staging_.capacity() * sizeof(std::int32_t) + makers_.size() * kTokenBlockBytes));
  }

 private:
  struct Claim {
    std::int64_t number = 0;
    RowCursor cursor;
  };
  // A wait is for the stages that the batch took, in their proportion.
  void count_wait(const RowStages& made, Seconds waited) {
    const Seconds all = made.total();
    if (all <= Seconds()) return;
    const double share = waited / all;
    waits_.held += made.held * share;
    waits_.read += made.read * share;
    waits_.pack += made.pack * share;
  }
  std::size_t slots() const { return static_cast<std::size_t>(options_.queue_batches); }
  std::size_t slot(std::int64_t number) const { return static_cast<std::size_t>(number) % slots(); }

  void run(Maker& maker) {
    while (const std::optional<Claim> mine = claim(maker)) {
      Result<Batch> batch = make(maker, *mine);
      const std::lock_guard lock(mutex_);
      if (batch.ok()) {
        batches_[slot(mine->number)] = *batch;
        ready_[slot(mine->number)] = true;
      } else {
        ended_ = true;
        // The consumer gets the first failure in the order of batches; the ones before it are claimed already.
        if (!error_ || mine->number < failed_) {
          error_ = batch.error();
          failed_ = mine->number;
        }
      }
      changed_.notify_all();
    }
  }

  // Waits for a free slot. Nothing: no batch is left to make, or the reader is being destroyed.
  std::optional<Claim> claim(const Maker& maker) {
    std::unique_lock lock(mutex_);
    const auto room = [&] { return claimed_ - given_ + (holding_ ? 1 : 0) < options_.queue_batches; };
    changed_.wait(lock, [&] { return stopping_ || ended_ || room(); });
    if (stopping_ || ended_) return std::nullopt;
    if (maker.ended(claim_)) {
      ended_ = true;
      changed_.notify_all();
      return std::nullopt;
    }
    const Claim mine{claimed_++, claim_};
    claim_ = maker.after(claim_);
    return mine;
  }

  Result<Batch> make(Maker& maker, const Claim& mine) {
    try {
      const Seconds began = maker.now();
      if (options_.before_batch) options_.before_batch(mine.number);
      const Seconds held = maker.now() - began;
      Result<Batch> batch =
          maker.make(mine.cursor, std::span(staging_).subspan(slot(mine.number) * slot_size_, slot_size_));
      if (batch.ok()) batch->made.held = held;
      return batch;
    } catch (const Failure& failure) { return failure.error(); } catch (const std::exception& other) {
      return error(ErrorKind::internal, "the data reader's thread failed: {}", other.what());
    }
  }

  const RowReaderOptions options_;
  std::vector<Maker> makers_;  // one for each thread
  std::vector<Batch> batches_;
  std::vector<char> ready_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t claimed_ = 0, given_ = 0, failed_ = 0;  // numbers of batches
  RowCursor claim_;                                    // of batch `claimed_`
  bool holding_ = false, stopping_ = false, ended_ = false;
  std::optional<Error> error_;
  RowCursor cursor_;
  RowStages waits_;
  const std::size_t slot_size_;
  std::vector<std::int32_t> staging_;
  std::vector<std::thread> threads_;
};

RowReader::RowReader(std::unique_ptr<Queue> queue) : queue_(std::move(queue)) {}
RowReader::~RowReader() = default;
RowReader::RowReader(RowReader&&) noexcept = default;

Status RowReader::fills_steps(const Packing& packing, const RowReaderOptions& options) {
  if (!options.drop_remainder || options.pass != RowPass::endless) return Done{};
  const std::int64_t step = options.rows_of_step();
  if (!Maker::bucketed(packing, options)) {
    if (step <= packing.rows()) return Done{};
    return error(ErrorKind::invalid, "data.drop_remainder: {} are no step of {}: all would be dropped",
                 counted(packing.rows(), "row"), step)
        .hinted("a smaller train.batch, or data.drop_remainder: false");
  }
  const std::optional<std::int64_t> edge = BucketOrder::unfilled(packing, step);
  if (!edge) return Done{};
  return error(ErrorKind::invalid, "data.drop_remainder: the rows of up to {} are no step of {}: all would be dropped",
               counted(*edge, "token"), rows_of_bucket(step, packing.sequence_length, *edge))
      .hinted("a smaller train.batch, fewer data.buckets, or data.drop_remainder: false");
}

Result<RowReader> RowReader::open(std::shared_ptr<const PackedTokens> data, RowReaderOptions options, RowCursor start) {
  const std::int64_t rows = data->packing.rows();
  const std::int64_t step = options.rows_of_step();
  CHECK(rows > 0 && options.queue_batches >= 2 && options.batch_rows > 0 && options.readers > 0,
        "a reader of {} rows in batches of {}, {} slots, {} threads", rows, options.batch_rows, options.queue_batches,
        options.readers);
  CHECK(!options.mixture || (options.mixture->rows() == rows && !options.drop_remainder),
        "a mixture of {} rows over {}", options.mixture->rows(), rows);
  CHECK(options.first_row >= 0 && options.first_row + options.batch_rows <= step, "rows {}+{} of a step of {}",
        options.first_row, options.batch_rows, step);
  const bool bucketed = Maker::bucketed(data->packing, options);
  CHECK(!bucketed || (!options.mixture && options.target_length == 0), "buckets of a mixture or of pairs");
  TRY(fills_steps(data->packing, options));
  const std::int64_t positions = RowReader::positions(data->packing, options);
  if (start.epoch < 0 || start.row < 0 || start.row >= positions) {
    return error(ErrorKind::invalid, "a data cursor at epoch {}, {} {}, but there are {} {}s", start.epoch,
                 bucketed ? "step" : "row", start.row, positions, bucketed ? "step" : "row")
        .hinted("the state belongs to other data: resume with the data it was saved with, or start a new run");
  }
  // A cursor that a reader without drop_remainder, or of other steps, left near an epoch's end.
  if (options.drop_remainder && options.pass == RowPass::endless && !bucketed && start.row + step > rows)
    start = {start.epoch + 1, 0};
  return RowReader(std::make_unique<Queue>(std::move(data), std::move(options), start));
}

Result<const Batch*> RowReader::next() { return queue_->next(); }
RowCursor RowReader::cursor() const { return queue_->cursor(); }
RowStages RowReader::waits() const { return queue_->waits(); }
Bytes RowReader::allocated() const { return queue_->allocated(); }

std::int64_t RowReader::positions(const Packing& packing, const RowReaderOptions& options) {
  if (!Maker::bucketed(packing, options)) return packing.rows();
  return BucketOrder::steps_of(packing, options.rows_of_step(), options.drop_remainder);
}

std::optional<std::string> RowReader::order_of(const Packing& packing, const RowReaderOptions& options) {
  if (!Maker::bucketed(packing, options)) return std::nullopt;
  return BucketOrder::name_of(packing, options.rows_of_step(), options.seed, options.drop_remainder);
}

Bytes RowReader::planned(const Packing& packing, const RowReaderOptions& options) {
  const std::int64_t staging = options.queue_batches * Maker::slot_size(packing, options);
  return Bytes(staging * static_cast<std::int64_t>(sizeof(std::int32_t)) +
               options.readers * static_cast<std::int64_t>(kTokenBlockBytes));
}

}  // namespace systole
