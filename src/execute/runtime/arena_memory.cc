#include "execute/runtime/arena_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "execute/runtime/communicator.h"

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

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

// Private anonymous memory aligned to a huge page; nullptr with errno if the system lacks it.
std::byte* map_aligned(std::size_t size) {
  const std::size_t kept = (size + page_size() - 1) / page_size() * page_size();
  void* whole = mmap(nullptr, kept + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (whole == MAP_FAILED) return nullptr;
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(whole) % kHugePage) % kHugePage;
  auto* data = static_cast<std::byte*>(whole) + before;
  if (before > 0) munmap(whole, before);
  munmap(data + kept, kHugePage - before);
  return data;
}

// Touches each page, in huge pages if the system has them: a step walks the whole arena, and TLB misses cost it more
// than cache misses. False with errno if memory runs out.
bool make_resident(std::byte* data, std::size_t size) {
  madvise(data, size, MADV_HUGEPAGE);  // a hint: if refused, pages are small
  if (madvise(data, size, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
  for (std::size_t at = 0; at < size; at += page_size())  // Linux before 5.14
    *static_cast<volatile std::byte*>(data + at) = std::byte{};
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

DeviceEvent HostDevice::copy_in(Memory& memory, const SlotAddress& to, std::span<const std::byte> from) {
  if (!from.empty()) std::memcpy(memory.host() + to.offset, from.data(), from.size());
  return {};
}

DeviceEvent HostDevice::copy_out(Memory& memory, const SlotAddress& from, std::span<std::byte> into) {
  if (!into.empty()) std::memcpy(into.data(), memory.host() + from.offset, into.size());
  return {};
}

Status HostDevice::finish_transfers() {
  return communicator_ == nullptr ? Status() : communicator_->finish_transfers();
}

}  // namespace systole
