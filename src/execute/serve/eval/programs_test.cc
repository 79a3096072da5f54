#include "execute/serve/eval/programs.h"

#include <gtest/gtest.h>

#include <bit>

namespace systole {
namespace {

// The share of all choices of k samples that have one of the first `passed`.
double counted_out(unsigned samples, unsigned passed, int k) {
  double all = 0, with = 0;
  for (unsigned choice = 0; choice < 1U << samples; ++choice) {
    if (std::popcount(choice) != k) continue;
    ++all;
    with += (choice & ((1U << passed) - 1)) != 0 ? 1 : 0;
  }
  return with / all;
}

TEST(Programs, pass_at_k_is_the_share_of_choices_with_one_that_passed) {
  for (unsigned samples = 1; samples <= 7; ++samples) {
    for (unsigned passed = 0; passed <= samples; ++passed) {
      for (int k = 1; k <= static_cast<int>(samples); ++k)
        EXPECT_NEAR(pass_at_k(samples, passed, k), counted_out(samples, passed, k), 1e-12)
            << samples << " " << passed << " " << k;
    }
  }
  EXPECT_NEAR(pass_at_k(1'000'000, 500'000, 1), 0.5, 1e-9);
}

}  // namespace
}  // namespace systole
