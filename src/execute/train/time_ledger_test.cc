#include "execute/train/time_ledger.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(TimeLedger, puts_each_moment_into_one_category_and_each_stretch_into_the_ring) {
  FakeClock clock;
  Ring ring(16);
  TimeLedger ledger(clock, Category::startup);
  clock.advance(Seconds(1.0));
  ledger.record_into(&ring, Seconds(0.5));
  ledger.set_step(42);
  {
    const InCategory computing(ledger, Category::compute);
    clock.advance(Seconds(2.0));
    {
      const InCategory saving(ledger, Category::checkpoint);
      clock.advance(Seconds(4.0));
    }
    clock.advance(Seconds(8.0));
    EXPECT_EQ(ledger.take_interval().total(), Seconds(15.0));
  }
  clock.advance(Seconds(16.0));
  const TimeByCategory total = ledger.total();
  EXPECT_EQ(total[Category::startup], Seconds(17.0));
  EXPECT_EQ(total[Category::compute], Seconds(10.0));
  EXPECT_EQ(total[Category::checkpoint], Seconds(4.0));
  EXPECT_EQ(total.total(), Seconds(31.0));
  EXPECT_EQ(ledger.take_interval()[Category::startup], Seconds(16.0));

  const auto span = [](Category ended, Category began, double from, double to) {
    return Span{static_cast<std::uint32_t>(ended), static_cast<std::uint32_t>(began), 42, Seconds(from), Seconds(to)};
  };
  const std::vector<Span> expected{
      span(Category::startup, Category::compute, -0.5, 0.5), span(Category::compute, Category::checkpoint, 0.5, 2.5),
      span(Category::checkpoint, Category::compute, 2.5, 6.5), span(Category::compute, Category::startup, 6.5, 14.5)};
  EXPECT_EQ(ring.read().spans, expected);
}

}  // namespace
}  // namespace systole
