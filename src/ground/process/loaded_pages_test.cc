#include "ground/process/loaded_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "ground/process/machine.h"

namespace systole {
namespace {

// A table in the program's file that spans many pages.
constexpr std::size_t kWords = 1 << 17;
struct Table {
  constexpr Table() {
    for (std::size_t i = 0; i < kWords; ++i) words[i] = i * 2654435761u;
  }
  std::uint64_t words[kWords]{};
};
constexpr Table kTable;

// Must read the memory each time: the compiler knows the values too.
std::uint64_t sum() {
  const volatile std::uint64_t* words = kTable.words;
  return std::accumulate(words, words + kWords, std::uint64_t{0});
}

TEST(LoadedPages, are_let_go_of_and_come_back_as_they_were) {
  const std::uint64_t before = sum();
  const Bytes held = resident_memory();
  let_go_of_loaded_pages();
  const Bytes left = resident_memory();
  EXPECT_LT(left + Bytes(sizeof(Table) / 2), held);
  EXPECT_EQ(sum(), before);
  EXPECT_GT(resident_memory(), left + Bytes(sizeof(Table) / 2));
}

// The number of mapped pages of the table: /proc/self/pagemap, bit 63 of a page's word.
int pages_of_table() {
  const auto page = static_cast<std::uintptr_t>(page_size().count());
  const auto first = reinterpret_cast<std::uintptr_t>(&kTable) / page;
  std::vector<std::uint64_t> words(sizeof(Table) / page);
  const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(::pread(map, words.data(), words.size() * 8, static_cast<off_t>(first * 8)),
            static_cast<ssize_t>(words.size() * 8));
  ::close(map);
  return static_cast<int>(
      std::count_if(words.begin(), words.end(), [](std::uint64_t word) { return word >> 63 != 0; }));
}

// Independent of the folio size in the page cache.
TEST(LoadedPages, come_back_in_small_pieces) {
  (void)sum();
  const int all = pages_of_table();
  EXPECT_GT(all, 200);
  let_go_of_loaded_pages();
  EXPECT_LE(pages_of_table(), 30);  // the first and last page are shared with neighbors
  (void)*static_cast<const volatile std::uint64_t*>(kTable.words + kWords / 2);
  EXPECT_GT(pages_of_table(), 0);
  EXPECT_LE(pages_of_table(), 46);
}

TEST(LoadedPages, that_were_written_to_stay) {
  const auto page = static_cast<std::uintptr_t>(page_size().count());
  const auto at = (reinterpret_cast<std::uintptr_t>(&kTable) + page) / page * page;
  auto* words = reinterpret_cast<volatile std::uint64_t*>(at);
  ASSERT_EQ(::mprotect(reinterpret_cast<void*>(at), page, PROT_READ | PROT_WRITE), 0);
  const std::uint64_t before = *words;
  *words = before + 1;
  let_go_of_loaded_pages();
  EXPECT_EQ(*words, before + 1);
  *words = before;
}

}  // namespace
}  // namespace systole
