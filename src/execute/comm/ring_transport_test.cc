// Failures specific to rings in shared memory; transport_test.cc covers what all transports share.
#include "execute/comm/ring_transport.h"

#include <gtest/gtest.h>

#include <cstring>

#include "execute/comm/testing/tested_transports.h"

namespace systole {
namespace {

TEST(RingTransport, a_rank_comes_once) {
  const auto segment = Segment::in_process(2, 4096).value();
  const auto first = ring_transport(segment, 0).value();
  EXPECT_EQ(ring_transport(segment, 0).error().kind, ErrorKind::busy);
  EXPECT_EQ(ring_transport(segment, 2).error().kind, ErrorKind::invalid);
  EXPECT_EQ(ring_transport(segment, -1).error().kind, ErrorKind::invalid);
}

// A peer that corrupts the shared words is detected.
TEST(RingTransport, damaged_words_are_refused) {
  for (const std::uint64_t wild : {std::uint64_t{1} << 40, ~std::uint64_t{0}, std::uint64_t{63}}) {
    const auto segment = Segment::in_process(2, 4096).value();
    const auto mine = ring_transport(segment, 0, {Seconds(5)}).value();
    segment->ring(1, 0).written.store(wild);
    expect_names(run_once(*mine, sum_over(2, {100})), ErrorKind::corrupt, {"rank 0", "rank 1", "damaged"});
  }
  for (const std::uint64_t wild : {std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    const auto segment = Segment::in_process(2, 4096).value();
    const auto mine = ring_transport(segment, 0, {Seconds(5)}).value();
    segment->ring(0, 1).read.store(wild);
    expect_names(run_once(*mine, sum_over(2, {1 << 14})), ErrorKind::corrupt, {"rank 0", "rank 1", "damaged"});
  }
  const auto segment = Segment::in_process(2, 4096).value();  // a nonsense header
  const auto mine = ring_transport(segment, 0, {Seconds(5)}).value();
  std::memset(segment->ring_data(1, 0), 0xff, 64);
  segment->ring(1, 0).written.store(128);
  expect_names(run_once(*mine, sum_over(2, {100})), ErrorKind::invalid, {"rank 0", "rank 1"});
}

}  // namespace
}  // namespace systole
