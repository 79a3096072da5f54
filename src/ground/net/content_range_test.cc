#include "ground/net/content_range.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(ContentRange, is_read_or_is_none) {
  const ContentRange some = read_content_range("bytes 6-10/11").value();
  EXPECT_EQ(some.begin, 6);
  EXPECT_EQ(some.total, 11);
  EXPECT_EQ(read_content_range("bytes 6-10/*")->total, std::nullopt);
  EXPECT_EQ(read_content_range("bytes */11")->begin, std::nullopt);
  EXPECT_EQ(read_content_range("bytes */11")->total, 11);
  for (const char* none : {"", "bytes", "bytes ", "bytes 6-10", "bytes 6/11", "bytes -6-10/11", "bytes 6--10/11",
                           "bytes 10-6/11", "bytes 6-10/-11", "bytes */-11", "bytes 6-10/", "rows 6-10/11"})
    EXPECT_FALSE(read_content_range(none).has_value()) << none;
}

}  // namespace
}  // namespace systole
