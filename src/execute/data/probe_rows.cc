#include <ctime>

#include <algorithm>

#include "execute/data/feed_probe.h"
#include "execute/data/page_cache.h"
#include "ground/store/store.h"

namespace systole {
namespace {

Seconds processor_time() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return Seconds(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec));
}

bool drop_all(const std::vector<std::string>& paths) {
  bool cold = !paths.empty();
  for (const std::string& path : paths) cold = drop_cached_pages(path) && cold;
  return cold;
}

// Takes batches for the time, or for one epoch: after it the cache has all of them. But a few of each thread at least,
// as far as four times the time allow.
Result<ReaderProbe> measure(const std::shared_ptr<const PackedTokens>& data, RowReaderOptions options,
                            std::int64_t readers, Clock& clock, Seconds budget) {
  options.readers = readers;
  options.queue_batches = readers + 2;
  const std::int64_t rows = data->packing.rows(), few = 3 * readers;
  RowReader reader = TRY(RowReader::open(data, options));
  // Each thread makes one: threads have started, and rounds of so many batches come together.
  for (std::int64_t i = 0; i < readers; ++i) TRY(reader.next());
  const Seconds began = clock.now(), processor = processor_time();
  ReaderProbe probe{.readers = readers};
  Seconds last = began;
  for (std::int64_t batches = 1, taken = 0;; ++batches) {
    taken += TRY(reader.next())->rows;
    const Seconds now = clock.now(), passed = now - began;
    probe.longest = std::max(probe.longest, now - last);
    last = now;
    const bool done = (passed >= budget || taken >= rows) && (batches >= few || passed >= budget * 4);
    if (batches % readers != 0 || !done) continue;
    probe.rows_per_second = static_cast<double>(taken) / std::max(passed, Seconds(1e-9)).count();
    probe.processor = Seconds((processor_time() - processor).count() / static_cast<double>(taken));
    return probe;
  }
}

// Reads shards from their begin on.
Result<BytesPerSecond> read_in_order(const std::vector<std::string>& paths, Clock& clock, Seconds budget) {
  const std::unique_ptr<Store> root = TRY(open_posix_store("/"));
  std::vector<std::byte> block(std::size_t{1} << 20);
  Bytes read;
  const Seconds began = clock.now();
  for (const std::string& path : paths) {
    const std::string name = path.substr(1);
    const std::int64_t size = TRY(root->size(name)).count();
    for (std::int64_t at = 0; at < size && clock.now() - began < budget;) {
      const auto count = std::min(size - at, static_cast<std::int64_t>(block.size()));
      TRY(root->read(name, at, std::span(block).first(static_cast<std::size_t>(count))));
      at += count;
      read += Bytes(count);
    }
  }
  return read / std::max(clock.now() - began, Seconds(1e-9));
}

}  // namespace

Result<ShardProbe> probe_rows(std::shared_ptr<const PackedTokens> data, const std::vector<std::string>& paths,
                              const RowReaderOptions& rows, Clock& clock, const FeedProbeOptions& how) {
  ShardProbe probe;
  std::int64_t tokens = 0;
  for (const TokenShard& shard : data->shards) tokens += shard.info().tokens * shard.token_bytes();
  const std::unique_ptr<Store> root = TRY(open_posix_store("/"));
  for (const std::string& path : paths) probe.size += TRY(root->size(path.substr(1)));
  probe.row_bytes = static_cast<double>(tokens) / static_cast<double>(std::max<std::int64_t>(1, data->packing.rows()));
  probe.batch_rows = rows.batch_rows;
  const Seconds each = how.budget * 0.1;
  probe.cold = drop_all(paths);
  probe.read = TRY(read_in_order(paths, clock, each));
  for (std::int64_t readers = 1; readers <= how.most_readers; readers *= 2) {
    const bool cold = drop_all(paths);
    ReaderProbe first = TRY(measure(data, rows, readers, clock, each));
    first.cold = cold;
    probe.readers.push_back(first);
    if (!cold) continue;
    const ReaderProbe again = TRY(measure(data, rows, readers, clock, each));
    probe.readers.push_back(again);
  }
  return probe;
}

}  // namespace systole
