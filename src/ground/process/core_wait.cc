#include "ground/process/core_wait.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>

namespace systole {

CoreWait::CoreWait() : file_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}

// "362775093 4154559 134": nanoseconds run, nanoseconds waited for a core, time slices.
Seconds CoreWait::so_far() const {
  char text[96];
  const ssize_t got = ::pread(file_.get(), text, sizeof text, 0);
  if (got <= 0) return {};
  const char* const end = text + got;
  const char* at = text;
  while (at != end && *at != ' ') ++at;
  std::int64_t waited = 0;
  if (at == end || std::from_chars(at + 1, end, waited).ec != std::errc()) return {};
  return Seconds(static_cast<double>(waited) * 1e-9);
}

}  // namespace systole
