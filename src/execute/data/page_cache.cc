#include "execute/data/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "ground/base/fd.h"

namespace systole {
namespace {

// The share of a file's pages that are in the cache. A mapping that is not touched loads none.
double cached_share(int fd, std::size_t bytes) {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return 1;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> there((bytes + page - 1) / page);
  const bool told = ::mincore(mapped, bytes, there.data()) == 0;
  ::munmap(mapped, bytes);
  if (!told) return 1;
  const auto cached = std::ranges::count_if(there, [](unsigned char flags) { return (flags & 1) != 0; });
  return static_cast<double>(cached) / static_cast<double>(there.size());
}

}  // namespace

bool drop_cached_pages(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0 || info.st_size <= 0) return false;
  ::fdatasync(fd.get());  // pages that are still to be written cannot be dropped
  if (::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED) != 0) return false;
  return cached_share(fd.get(), static_cast<std::size_t>(info.st_size)) < 0.02;
}

}  // namespace systole
