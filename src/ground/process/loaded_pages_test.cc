#include "ground/process/loaded_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <fstream>
#include <numeric>
#include <string>

#include "ground/process/machine.h"

namespace systole {
namespace {

// A table of the program's file, of many pages.
constexpr std::size_t kWords = 1 << 17;
struct Table {
  constexpr Table() {
    for (std::size_t i = 0; i < kWords; ++i) words[i] = i * 2654435761u;
  }
  std::uint64_t words[kWords]{};
};
constexpr Table kTable;

// Read each time: the compiler knows it too.
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
