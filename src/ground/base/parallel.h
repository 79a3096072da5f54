#pragma once
// The same work for many items by a few threads: chunks of a checkpoint are hashed, written and read so, Programs of a
// search made.

#include <cstddef>
#include <functional>

#include "ground/base/result.h"

namespace systole {

// Calls `work(i)` for 0 <= i < count, in order on this thread when `threads` is 1, else on that many threads that each
// take the next. After an error nothing more is begun; the error of the lowest i is returned. What `work` throws is
// thrown here. `work` is called from several threads at a time.
Status for_each_in_parallel(std::size_t count, int threads, const std::function<Status(std::size_t)>& work);

// Threads of this machine, 1 to 8: as many as help with bytes.
int io_threads();

}  // namespace systole
