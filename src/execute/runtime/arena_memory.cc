#include "execute/runtime/arena_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "execute/runtime/communicator.h"
#include "ground/base/parallel.h"

namespace systole {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Huge pages that lie wholly in ranges of `later`, by their offsets; each in order of its depth in the first range that
// it touches. Neighbouring ranges count as one.
std::vector<std::size_t> pages_for_later(std::span<const MemoryRange> later) {
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> pages;  // page → bytes in ranges, depth
  for (const MemoryRange& range : later) {
    const auto begin = static_cast<std::size_t>(range.offset), end = begin + static_cast<std::size_t>(range.size);
    for (std::size_t page = begin / kHugePage; page * kHugePage < end; ++page) {
      const std::size_t from = std::max(begin, page * kHugePage), to = std::min(end, (page + 1) * kHugePage);
      auto& [bytes, depth] = pages.try_emplace(page, 0, page - begin / kHugePage).first->second;
      bytes += to - from;
    }
  }
  std::vector<std::pair<std::size_t, std::size_t>> whole;  // depth, page
  for (const auto& [page, of] : pages)
    if (of.first == kHugePage) whole.emplace_back(of.second, page);
  std::ranges::sort(whole);
  std::vector<std::size_t> offsets;
  for (const auto& [depth, page] : whole) offsets.push_back(page * kHugePage);
  return offsets;
}

class Arena : public ArenaMemory {
 public:
  Arena(std::byte* data, Bytes size, std::vector<std::size_t> later)
      : data_(data), size_(size), later_(std::move(later)) {}
  ~Arena() override {
    filler_.request_stop();
    if (filler_.joinable()) filler_.join();
    if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(size_.count()));
  }
  Bytes size() const override { return size_; }
  std::byte* host() override { return data_; }
  void begin_fill() override {
    if (later_.empty() || filler_.joinable()) return;
    filler_ = std::jthread([this](const std::stop_token& stop) {
      for (const std::size_t page : later_) {
        // What cannot be had now, or by a system without this advice, comes with its first use.
        if (stop.stop_requested() || madvise(data_ + page, kHugePage, MADV_POPULATE_WRITE) != 0) return;
      }
    });
  }

 private:
  std::byte* data_;
  Bytes size_;
  const std::vector<std::size_t> later_;  // offsets of huge pages
  std::jthread filler_;
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

bool make_part_resident(std::byte* data, std::size_t size) {
  if (madvise(data, size, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
  for (std::size_t at = 0; at < size; at += page_size())  // Linux before 5.14
    *static_cast<volatile std::byte*>(data + at) = std::byte{};
  return true;
}

// Touches each page, of large ranges by several threads: the system clears them. False with errno if memory runs out.
bool make_resident(std::byte* data, std::size_t size) {
  constexpr std::size_t kPart = 16 * kHugePage;
  std::atomic<int> why = 0;
  (void)for_each_in_parallel((size + kPart - 1) / kPart, io_threads(), [&](std::size_t i) -> Status {
    if (make_part_resident(data + i * kPart, std::min(kPart, size - i * kPart))) return {};
    why = errno;
    return error(ErrorKind::no_space, "the arena's memory");  // no further part begins
  });
  errno = why;
  return why == 0;
}

// The arena but for pages of `later`, in huge pages if the system has them: a step walks the whole arena, and TLB misses
// cost it more than cache misses. False with errno if memory runs out.
bool make_resident_but(std::byte* data, std::size_t size, std::vector<std::size_t> later) {
  madvise(data, size, MADV_HUGEPAGE);  // a hint: if refused, pages are small
  std::ranges::sort(later);
  std::size_t done = 0;
  for (const std::size_t page : later) {
    if (!make_resident(data + done, page - done)) return false;
    done = page + kHugePage;
  }
  return make_resident(data + done, size - done);
}

}  // namespace

Result<std::unique_ptr<ArenaMemory>> allocate_arena(Bytes bytes, std::span<const MemoryRange> later) {
  if (bytes.count() == 0)
    return std::unique_ptr<ArenaMemory>(std::make_unique<Arena>(nullptr, bytes, std::vector<std::size_t>()));
  const auto size = static_cast<std::size_t>(bytes.count());
  std::vector<std::size_t> pages = pages_for_later(later);
  std::byte* data = map_aligned(size);
  if (data == nullptr || !make_resident_but(data, size, pages)) {
    const int why = errno;
    if (data != nullptr) munmap(data, size);
    return error(ErrorKind::does_not_fit, "the system has no {} for the arena: {}", to_string(bytes),
                 std::strerror(why))
        .hinted(
            "train.microbatches, train.recompute or a smaller model lower the need; 'systole plan' shows by how much");
  }
  return std::unique_ptr<ArenaMemory>(std::make_unique<Arena>(data, bytes, std::move(pages)));
}

Result<std::unique_ptr<Memory>> HostDevice::allocate_with(Bytes bytes, std::span<const MemoryRange> later) {
  std::unique_ptr<ArenaMemory> arena = TRY(allocate_arena(bytes, later));
  arena->begin_fill();
  return std::unique_ptr<Memory>(std::move(arena));
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
