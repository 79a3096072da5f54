#include "execute/data/masking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace systole {
namespace {

using Numbers = std::vector<std::int32_t>;

struct Row {
  Numbers tokens, labels;
  std::int64_t count = 0;
};

// `segments` is as long as the row; every token is 100, except eos at multiples of 50.
Row masked(const Masking& masking, std::int64_t epoch, std::int64_t row, const Numbers& segments) {
  Row result{Numbers(segments.size(), 100), Numbers(segments.size(), 77), 0};
  for (std::size_t i = 0; i < segments.size(); i += 50) result.tokens[i] = masking.eos;
  result.count = mask_row(masking, epoch, row, segments, result.tokens, result.labels);
  return result;
}

TEST(Masking, shares_are_those_asked_for_and_labels_what_was_there) {
  const Masking masking;
  const std::size_t size = 200'000;
  const Row row = masked(masking, 0, 0, Numbers(size, 1));
  double drawn = 0, hidden = 0, random = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (row.labels[i] == -1) {
      EXPECT_EQ(row.tokens[i], i % 50 == 0 ? masking.eos : 100);
      continue;
    }
    EXPECT_EQ(row.labels[i], 100);
    EXPECT_NE(i % 50, 0U) << "the end of a document was drawn";
    drawn += 1;
    hidden += row.tokens[i] == kMaskToken ? 1 : 0;
    const bool other = row.tokens[i] != kMaskToken && row.tokens[i] != 100;
    random += other ? 1 : 0;
    if (other) {
      EXPECT_GE(row.tokens[i], masking.first);
      EXPECT_LT(row.tokens[i], masking.end);
    }
  }
  EXPECT_EQ(row.count, static_cast<std::int64_t>(drawn));
  // Five standard deviations of a binomial.
  const auto expect_share = [](double share, double of, double wanted) {
    EXPECT_NEAR(share / of, wanted, 5 * std::sqrt(wanted * (1 - wanted) / of));
  };
  expect_share(drawn, static_cast<double>(size) * 0.98, 0.15);
  expect_share(hidden, drawn, 0.8);
  expect_share(random, drawn, 0.1);
}

TEST(Masking, padding_is_never_drawn) {
  Numbers segments(1000, 0);
  std::fill_n(segments.begin(), 400, 2);
  const Row row = masked({.share = 1}, 0, 0, segments);
  EXPECT_EQ(row.count, 392);
  for (std::size_t i = 400; i < 1000; ++i) EXPECT_EQ(row.labels[i], -1);
}

TEST(Masking, the_draw_belongs_to_seed_epoch_row_and_place) {
  const Numbers segments(500, 1);
  const Row first = masked({}, 3, 4, segments);
  EXPECT_EQ(first.labels, masked({}, 3, 4, segments).labels);
  EXPECT_NE(first.labels, masked({}, 3, 5, segments).labels);
  EXPECT_NE(first.labels, masked({}, 4, 4, segments).labels);
  EXPECT_NE(first.labels, masked({.seed = 1}, 3, 4, segments).labels);
  // A longer row has the same beginning.
  const Row longer = masked({}, 3, 4, Numbers(600, 1));
  EXPECT_TRUE(std::equal(first.labels.begin(), first.labels.end(), longer.labels.begin()));
  EXPECT_TRUE(std::equal(first.tokens.begin(), first.tokens.end(), longer.tokens.begin()));
}

}  // namespace
}  // namespace systole
