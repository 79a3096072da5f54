#pragma once
// What preparing a workload's data took, and what its cache of objects met: in words for people, and as fields.

#include <optional>
#include <string>

#include "describe/spec/workload.h"
#include "ground/base/document.h"
#include "ground/store/object_tiers.h"
#include "operate/run/run_data.h"

namespace systole {

// Nothing: no text in buckets.
std::optional<CacheCounts> cache_of(const Data& data);
Node to_node(const CacheCounts& cache);
// "2 in the cache (155 KiB), 1 fetched (78 KiB), 1 damaged"; "": no object was needed.
std::string told_cache(const Data& data);
// A warning: objects in the cache had other bytes than were fetched.
std::optional<Error> damaged_objects(const Data& data, const Workload& workload);

// Parts of `startup`.
struct DataTimes {
  Seconds list{}, fetch{}, build{};  // of buckets; of their objects; of tokens, and waiting for who builds them
  Seconds open{};                    // all else: hashes of files, the tokenizer, the dataset
  Seconds total() const { return list + fetch + build + open; }
};
// Zero: no text.
DataTimes times_of(const Data& data);
// "list 20.1 ms, fetch 1.20 s (objects: 2 fetched (155 KiB)), build 700 ms, open 5.00 ms"; "": no text
std::string told_times(const Data& data);

}  // namespace systole
