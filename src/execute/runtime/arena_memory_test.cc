#include "execute/runtime/arena_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "ground/base/units.h"

namespace systole {
namespace {

TEST(Arena, begins_at_a_huge_pages_border_and_is_resident_to_its_last_byte) {
  const auto page = static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
  for (const Bytes bytes : {Bytes(1), Bytes(page), 2 * kMiB, 5 * kMiB + Bytes(1), 6 * kMiB - Bytes(page)}) {
    const std::unique_ptr<Memory> arena = allocate_arena(bytes).value();
    EXPECT_EQ(arena->size(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena->host()) % static_cast<std::uintptr_t>((2 * kMiB).count()), 0U);
    std::vector<unsigned char> pages(static_cast<std::size_t>((bytes.count() + page - 1) / page));
    ASSERT_EQ(::mincore(arena->host(), static_cast<std::size_t>(bytes.count()), pages.data()), 0) << bytes.count();
    EXPECT_TRUE(std::ranges::all_of(pages, [](unsigned char p) { return (p & 1) != 0; })) << bytes.count();
    arena->host()[bytes.count() - 1] = std::byte{1};
  }
}

std::int64_t resident_pages(Memory& arena, std::int64_t offset, std::int64_t size) {
  const auto page = static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages(static_cast<std::size_t>(size / page));
  EXPECT_EQ(::mincore(arena.host() + offset, static_cast<std::size_t>(size), pages.data()), 0);
  return std::ranges::count_if(pages, [](unsigned char p) { return (p & 1) != 0; });
}

// Two ranges side by side count as one, whole huge pages of it are left; the rest is resident at once.
TEST(Arena, ranges_for_later_become_resident_in_the_background) {
  const std::int64_t huge = (2 * kMiB).count(), page = ::sysconf(_SC_PAGESIZE), each = huge / page;
  const MemoryRange later[] = {{huge / 2, huge}, {huge / 2 + huge, 3 * huge}};  // from half of page 0 to half of page 4
  const std::unique_ptr<ArenaMemory> arena = allocate_arena(Bytes(6 * huge + page), later).value();
  EXPECT_EQ(arena->size(), Bytes(6 * huge + page)) << "all of it is allocated";
  EXPECT_EQ(resident_pages(*arena, huge, 3 * huge), 0);
  EXPECT_EQ(resident_pages(*arena, 0, huge), each);
  EXPECT_EQ(resident_pages(*arena, 4 * huge, 2 * huge + page), 2 * each + 1);
  arena->host()[2 * huge + 5] = std::byte{7};
  EXPECT_GT(resident_pages(*arena, 2 * huge, huge), 0) << "by its use";
  arena->begin_fill();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (resident_pages(*arena, huge, 3 * huge) < 3 * each && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(resident_pages(*arena, huge, 3 * huge), 3 * each);
  EXPECT_EQ(arena->host()[2 * huge + 5], std::byte{7});
  EXPECT_EQ(arena->host()[huge], std::byte{0});
}

TEST(Arena, may_go_while_it_is_filled) {
  const MemoryRange later[] = {{0, (64 * kMiB).count()}};
  const std::unique_ptr<ArenaMemory> arena = allocate_arena(64 * kMiB, later).value();
  arena->begin_fill();
}

TEST(Arena, of_more_than_the_system_has_is_refused) {
  const auto refused = allocate_arena(Bytes(std::int64_t{1} << 46));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::does_not_fit);
  EXPECT_NE(refused.error().hint.find("systole plan"), std::string::npos);
}

}  // namespace
}  // namespace systole
