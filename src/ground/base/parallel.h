#pragma once
// A parallel for over a few threads: hashes, writes and reads checkpoint chunks, and builds the Programs of a plan
// search.

#include <cstddef>
#include <functional>

#include "ground/base/result.h"

namespace systole {

// Calls `work(i)` for 0 <= i < count: in order on this thread if `threads` is 1, else on that many threads, each of
// which takes the next i. After an error no new call starts; the error of the lowest i is returned. An exception of
// `work` is rethrown here. REQUIRES: `work` is thread-safe.
Status for_each_in_parallel(std::size_t count, int threads, const std::function<Status(std::size_t)>& work);

// Number of threads for I/O-bound work on this machine, 1 to 8.
int io_threads();

}  // namespace systole
