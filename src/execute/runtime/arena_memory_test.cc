#include "execute/runtime/arena_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
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

TEST(Arena, of_more_than_the_system_has_is_refused) {
  const auto refused = allocate_arena(Bytes(std::int64_t{1} << 46));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::does_not_fit);
  EXPECT_NE(refused.error().hint.find("systole plan"), std::string::npos);
}

}  // namespace
}  // namespace systole
