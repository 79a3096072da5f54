#include "execute/data/rows.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "execute/data/row_maker.h"

namespace systole {

Bytes PackedTokens::resident() const {
  Bytes bytes = packing.resident();
  for (const TokenShard& shard : shards) bytes += shard.resident();
  return bytes;
}

// A ring of slots between one thread and one consumer. Slots [given, made) are ready; the consumer holds the slot
// before `given` until its next call.
class RowReader::Queue {
 public:
  Queue(std::shared_ptr<const PackedTokens> data, RowReaderOptions options, RowCursor start)
      : options_(std::move(options)),
        maker_(data, options_),
        batches_(slots()),
        start_(start),
        cursor_(start),
        slot_size_(static_cast<std::size_t>(Maker::slot_size(data->packing, options_))),
        staging_(slots() * slot_size_) {
    thread_ = std::thread([this] { run(); });
  }

  ~Queue() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Result<const Batch*> next() {
    std::unique_lock lock(mutex_);
    holding_ = false;
    changed_.notify_all();
    changed_.wait(lock, [&] { return made_ > given_ || finished_; });
    if (made_ == given_) {
      if (error_) return *error_;
      return static_cast<const Batch*>(nullptr);
    }
    const Batch& batch = batches_[slot(given_++)];
    holding_ = true;
    cursor_ = batch.next;
    return &batch;
  }

  RowCursor cursor() const {
    const std::lock_guard lock(mutex_);
    return cursor_;
  }
  Bytes allocated() const {
    return Bytes(static_cast<std::int64_t>(staging_.capacity() * sizeof(std::int32_t) + kTokenBlockBytes));
  }

 private:
  std::size_t slots() const { return static_cast<std::size_t>(options_.queue_batches); }
  std::size_t slot(std::int64_t number) const { return static_cast<std::size_t>(number) % slots(); }

  void run() {
    RowCursor cursor = start_;
    for (std::int64_t number = 0; wait_for_slot() && !maker_.ended(cursor); ++number) {
      Result<Batch> batch = make(number, cursor);
      const std::lock_guard lock(mutex_);
      if (!batch.ok()) {
        error_ = batch.error();
        break;
      }
      cursor = batch->next;
      batches_[slot(made_++)] = *batch;
      changed_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  }

  // False when the reader is being destroyed.
  bool wait_for_slot() {
    std::unique_lock lock(mutex_);
    const auto room = [&] { return made_ - given_ + (holding_ ? 1 : 0) < options_.queue_batches; };
    changed_.wait(lock, [&] { return stopping_ || room(); });
    return !stopping_;
  }

  Result<Batch> make(std::int64_t number, RowCursor cursor) {
    try {
      if (options_.before_batch) options_.before_batch(number);
      return maker_.make(cursor, std::span(staging_).subspan(slot(number) * slot_size_, slot_size_));
    } catch (const Failure& failure) { return failure.error(); } catch (const std::exception& other) {
      return error(ErrorKind::internal, "the data reader's thread failed: {}", other.what());
    }
  }

  const RowReaderOptions options_;
  Maker maker_;  // used by the thread only
  std::vector<Batch> batches_;
  const RowCursor start_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t made_ = 0, given_ = 0;
  bool holding_ = false, stopping_ = false, finished_ = false;
  std::optional<Error> error_;
  RowCursor cursor_;
  const std::size_t slot_size_;
  std::vector<std::int32_t> staging_;
  std::thread thread_;
};

RowReader::RowReader(std::unique_ptr<Queue> queue) : queue_(std::move(queue)) {}
RowReader::~RowReader() = default;
RowReader::RowReader(RowReader&&) noexcept = default;

Result<RowReader> RowReader::open(std::shared_ptr<const PackedTokens> data, RowReaderOptions options, RowCursor start) {
  const std::int64_t rows = data->packing.rows();
  const std::int64_t step = options.step_rows > 0 ? options.step_rows : options.batch_rows;
  CHECK(rows > 0 && options.queue_batches >= 2 && options.batch_rows > 0,
        "a reader of {} rows in batches of {}, {} slots", rows, options.batch_rows, options.queue_batches);
  CHECK(options.first_row >= 0 && options.first_row + options.batch_rows <= step, "rows {}+{} of a step of {}",
        options.first_row, options.batch_rows, step);
  if (start.epoch < 0 || start.row < 0 || start.row >= rows) {
    return error(ErrorKind::invalid, "a data cursor at epoch {}, row {}, but there are {} rows", start.epoch, start.row,
                 rows)
        .hinted("the state belongs to other data: resume with the data it was saved with, or start a new run");
  }
  return RowReader(std::make_unique<Queue>(std::move(data), std::move(options), start));
}

Result<const Batch*> RowReader::next() { return queue_->next(); }
RowCursor RowReader::cursor() const { return queue_->cursor(); }
Bytes RowReader::allocated() const { return queue_->allocated(); }

Bytes RowReader::planned(const Packing& packing, const RowReaderOptions& options) {
  const std::int64_t staging = options.queue_batches * Maker::slot_size(packing, options);
  return Bytes(staging * static_cast<std::int64_t>(sizeof(std::int32_t)) + static_cast<std::int64_t>(kTokenBlockBytes));
}

}  // namespace systole
