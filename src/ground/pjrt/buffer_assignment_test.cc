#include "ground/pjrt/buffer_assignment.h"

#include <gtest/gtest.h>

#include "ground/pjrt/wire.h"

namespace systole::pjrt {
namespace {

std::string written() {
  WireWriter parameter, output, temporary, assignment;
  parameter.integer(1, 0).integer(2, 4096).integer(5, 1).integer(6, 0).bytes(9, "skipped");
  output.integer(2, 512).integer(7, 1).integer(11, 1);
  temporary.integer(2, 1 << 20).integer(8, 1);
  assignment.bytes(1, "logical buffers").message(3, parameter).message(3, output).message(3, temporary);
  return WireWriter().bytes(1, "the module").message(3, assignment).text();
}

TEST(BufferAssignment, is_read) {
  const std::vector<BufferAllocation> all = read_buffers(written()).value();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].size, Bytes(4096));
  EXPECT_TRUE(all[0].is_parameter);
  EXPECT_FALSE(all[0].is_output);
  EXPECT_TRUE(all[1].is_output);
  EXPECT_EQ(all[2].memory, 1);
}

TEST(BufferAssignment, what_ends_too_early_is_none) {
  const std::string whole = written();
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(read_buffers(whole.substr(0, length)).error().kind, ErrorKind::corrupt) << length;
  WireWriter negative, assignment;
  negative.integer(2, -5);
  assignment.message(3, negative);
  EXPECT_FALSE(read_buffers(WireWriter().message(3, assignment).text()).ok());
}

}  // namespace
}  // namespace systole::pjrt
