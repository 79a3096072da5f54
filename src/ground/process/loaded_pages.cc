#include "ground/process/loaded_pages.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace systole {
namespace {

// Bits of /proc/self/pagemap, one word per page (Linux, Documentation/admin-guide/mm/pagemap.rst).
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63, kOfFile = std::uint64_t{1} << 61;

struct Pagemap {
  int fd;
  std::uintptr_t page_size;
};

void let_go(const Pagemap& map, std::uintptr_t first, std::uintptr_t last) {
  std::array<std::uint64_t, 512> words;
  while (first < last) {
    const std::size_t wanted = std::min(words.size(), last - first);
    const ssize_t got =
        ::pread(map.fd, words.data(), wanted * sizeof(words[0]), static_cast<off_t>(first * sizeof(words[0])));
    const std::size_t pages = got > 0 ? static_cast<std::size_t>(got) / sizeof(words[0]) : 0;
    if (pages == 0) return;
    const auto unchanged = [&](std::size_t i) { return (words[i] & kPresent) != 0 && (words[i] & kOfFile) != 0; };
    for (std::size_t begin = 0, end = 0; begin < pages; begin = end + 1) {
      for (end = begin; end < pages && unchanged(end);) ++end;
      if (end == begin) continue;
      void* at = reinterpret_cast<void*>((first + begin) * map.page_size);  // NOLINT: addresses are the linker's words
      ::madvise(at, (end - begin) * map.page_size, MADV_DONTNEED);          // a hint: if refused, the pages stay
    }
    first += pages;
  }
}

// The kernel chooses how much one page fault maps: 16 pages, or since Linux 6.18 a whole folio of the page cache, up to
// 2 MiB, depending on how the file was read. It never crosses the end of a mapping, and a mapping ends where its flags
// change. So alternating pieces get a different core dump flag (core dumps omit file pages anyway, unless configured).
constexpr std::uintptr_t kPiece = 64 * 1024;  // what one fault maps, aligned, on older kernels too

void split(std::uintptr_t first, std::uintptr_t last) {
  for (std::uintptr_t at = (first + kPiece - 1) / kPiece * kPiece; at < last; at += 2 * kPiece)
    ::madvise(reinterpret_cast<void*>(at), std::min(kPiece, last - at), MADV_DONTDUMP);  // NOLINT: as above
}

int let_go_of_object(dl_phdr_info* object, std::size_t, void* data) {
  const Pagemap& map = *static_cast<const Pagemap*>(data);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    const std::uintptr_t end = (begin + segment.p_memsz + map.page_size - 1) / map.page_size;
    let_go(map, begin / map.page_size, end);
    split(begin / map.page_size * map.page_size, end * map.page_size);
  }
  return 0;
}

}  // namespace

void let_go_of_loaded_pages() {
  Pagemap map{::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE))};
  if (map.fd < 0) return;
  ::dl_iterate_phdr(let_go_of_object, &map);  // no library is unloaded meanwhile
  ::close(map.fd);
}

}  // namespace systole
