#include "ground/net/http_record.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

namespace systole {
namespace {

using std::chrono::nanoseconds;

nanoseconds sum_of(const HttpRecord& record) {
  nanoseconds sum{};
  for (const HttpRecord::Part& part : record.parts()) sum += part.time;
  return sum;
}

TEST(HttpRecord, parts_are_the_whole_time_to_the_nanosecond) {
  const auto began = std::chrono::steady_clock::now() - std::chrono::milliseconds(5);
  HttpRecord record(began);
  for (int i = 0; i < 100; ++i) record.enter(i % 3 == 0 ? "a" : "b");
  const auto ended = std::chrono::steady_clock::now();
  record.end(ended);
  EXPECT_EQ(sum_of(record), ended - began);
  ASSERT_EQ(record.parts().size(), 3u);
  EXPECT_EQ(record.parts()[0].name, HttpRecord::kReceive);
  EXPECT_GE(record.parts()[0].time, std::chrono::milliseconds(5));
}

TEST(HttpRecord, what_comes_after_the_end_is_ignored) {
  HttpRecord record(std::chrono::steady_clock::now());
  record.count("tokens");
  record.end(std::chrono::steady_clock::now());
  const nanoseconds before = sum_of(record);
  record.enter("late");
  record.count("tokens");
  record.note("late", 1);
  record.mark("late");
  record.end(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  EXPECT_EQ(sum_of(record), before);
  EXPECT_EQ(record.counted("tokens"), 1);
  EXPECT_TRUE(record.notes().empty());
  EXPECT_FALSE(record.marked("late"));
}

}  // namespace
}  // namespace systole
