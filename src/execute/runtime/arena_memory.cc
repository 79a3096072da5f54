#include "execute/runtime/arena_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace systole {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

class Arena : public Memory {
 public:
  Arena(std::byte* data, Bytes size) : data_(data), size_(size) {}
  ~Arena() override {
    if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(size_.count()));
  }
  Bytes size() const override { return size_; }
  std::byte* host() override { return data_; }

 private:
  std::byte* data_;
  Bytes size_;
};

// Private anonymous memory that begins at a huge page's border; nullptr with errno where the system has not that much.
std::byte* map_aligned(std::size_t size) {
  void* whole = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (whole == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(whole);
  void* aligned = whole;
  std::size_t space = size + kHugePage;
  std::align(kHugePage, size, aligned, space);
  auto* data = static_cast<std::byte*>(aligned);
  const auto before = static_cast<std::size_t>(data - begin);
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), kept = (size + page - 1) / page * page;
  if (before > 0) munmap(begin, before);
  if (kHugePage > before + (kept - size)) munmap(data + kept, size + kHugePage - before - kept);
  return data;
}

// Touches each page, in huge pages where the system has them: a step goes through the whole arena, and misses of the
// address cache cost it more than those of the caches. False with errno where memory runs out.
bool make_resident(std::byte* data, std::size_t size) {
  madvise(data, size, MADV_HUGEPAGE);  // a hint: refused, the pages are small
  if (madvise(data, size, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));  // Linux before 5.14
  for (std::size_t at = 0; at < size; at += page) *static_cast<volatile std::byte*>(data + at) = std::byte{};
  return true;
}

}  // namespace

Result<std::unique_ptr<Memory>> allocate_arena(Bytes bytes) {
  if (bytes.count() == 0) return std::unique_ptr<Memory>(std::make_unique<Arena>(nullptr, bytes));
  const auto size = static_cast<std::size_t>(bytes.count());
  std::byte* data = map_aligned(size);
  if (data == nullptr || !make_resident(data, size)) {
    const int why = errno;
    if (data != nullptr) munmap(data, size);
    return error(ErrorKind::does_not_fit, "the system has no {} for the arena: {}", to_string(bytes),
                 std::strerror(why))
        .hinted(
            "train.microbatches, train.recompute or a smaller model lower the need; 'systole plan' shows by how much");
  }
  return std::unique_ptr<Memory>(std::make_unique<Arena>(data, bytes));
}

}  // namespace systole
