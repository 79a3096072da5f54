#include "execute/data/formats/byte_window.h"

#include <gtest/gtest.h>

#include "execute/data/formats/compressing_file.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

// Whatever is asked for, in order of a compressed file and in any order of a plain one, is what the file holds there.
TEST(ByteWindow, GivesTheBytesOfTheFile) {
  const std::unique_ptr<Store> store = make_memory_store();
  PhiloxStream random(11);
  std::string whole(1'500'000, ' ');
  for (char& c : whole) c = static_cast<char>('a' + random.below(16));
  for (const auto& [path, compression] : {std::pair("plain", Compression::none), std::pair("a.gz", Compression::gzip),
                                          std::pair("a.zst", Compression::zstd)}) {
    const auto file = create_compressed(*store, path, compression).value();
    file->append(whole).value();
    file->finish().value();
    for (int trial = 0; trial < 20; ++trial) {
      const auto window = ByteWindow::open({store.get(), path, path}).value();
      ASSERT_EQ(window->seekable(), compression == Compression::none);
      std::size_t begin = 0;
      while (begin <= whole.size()) {
        const std::size_t count = random.below(random.below(10) == 0 ? 800'000 : 5000);
        const auto got =
            window->bytes(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(begin + count)).value();
        ASSERT_TRUE(got == std::string_view(whole).substr(begin, count)) << path << " " << begin << " " << count;
        begin += random.below(random.below(10) == 0 ? 900'000 : 8000);
        if (window->seekable() && random.below(20) == 0) begin /= 2;
      }
      EXPECT_EQ(window->bytes(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(begin + 5)).value(), "");
    }
  }
}

}  // namespace
}  // namespace systole
