#include "operate/run/data_told.h"

#include "ground/base/counted.h"
#include "operate/run/bucket_files.h"

namespace systole {

// What prepare_data has opened.
static const BucketFiles* files_of(const Data& data) { return dynamic_cast<const BucketFiles*>(data.files.get()); }

std::optional<CacheCounts> cache_of(const Data& data) {
  const BucketFiles* files = files_of(data);
  return files != nullptr ? files->counts() : std::nullopt;
}

Node to_node(const CacheCounts& cache) {
  return Node::map({{"memory_hits", cache.in_memory},
                    {"memory_hit_bytes", cache.memory_bytes.count()},
                    {"disk_hits", cache.on_disk},
                    {"disk_hit_bytes", cache.disk_bytes.count()},
                    {"misses", cache.fetched},
                    {"fetched_bytes", cache.fetched_bytes.count()},
                    {"damaged", cache.damaged}});
}

std::string told_cache(const Data& data) {
  const std::optional<CacheCounts> cache = cache_of(data);
  if (!cache) return "";
  std::string text;
  const auto told = [&text](std::int64_t count, const char* where, Bytes bytes) {
    if (count > 0)
      text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", with_commas(count), where, to_string(bytes));
  };
  told(cache->in_memory, "in memory", cache->memory_bytes);
  told(cache->on_disk, "in the cache", cache->disk_bytes);
  told(cache->fetched, "fetched", cache->fetched_bytes);
  if (cache->damaged > 0) text += fmt::format(", {} damaged", with_commas(cache->damaged));
  return text;
}

std::optional<Error> damaged_objects(const Data& data, const Workload& workload) {
  const std::optional<CacheCounts> cache = cache_of(data);
  if (!cache || cache->damaged == 0) return std::nullopt;
  return error(ErrorKind::corrupt, "data.cache: {} in '{}' had other bytes than were fetched: dropped, and {} again",
               counted(cache->damaged, "object"), workload.data.cache_folder,
               cache->fetched > 0 ? "fetched" : "copied from the disk")
      .hinted("a disk that changes bytes is failing: smartctl -a DEVICE, dmesg");
}

DataTimes times_of(const Data& data) {
  const BucketFiles* files = files_of(data);
  if (files == nullptr) return {};
  const BucketFiles::Spent& spent = files->spent;
  return {spent.list, spent.fetch, spent.build, spent.all - spent.list - spent.fetch - spent.build};
}

std::string told_times(const Data& data) {
  const DataTimes times = times_of(data);
  if (times.total() <= Seconds()) return "";
  std::string text;
  if (times.list > Seconds()) text += fmt::format("list {}, ", to_string(times.list));
  if (times.fetch > Seconds())
    text += fmt::format("fetch {} (objects: {}), ", to_string(times.fetch), told_cache(data));
  if (times.build > Seconds()) text += fmt::format("build {}, ", to_string(times.build));
  return text + fmt::format("open {}", to_string(times.open));
}

}  // namespace systole
