#include "ground/base/arrange.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

namespace systole {
namespace {

// Of each order of five items, two of them alike.
TEST(Arrange, every_order_is_sorted_and_nothing_is_lost) {
  std::vector<int> order{1, 2, 2, 3, 4};
  do {
    std::vector<std::unique_ptr<int>> items;
    for (const int number : order) items.push_back(std::make_unique<int>(number));
    arrange(items, [](const auto& a, const auto& b) { return *a > *b; });
    std::vector<int> seen;
    for (const auto& item : items) seen.push_back(item ? *item : -1);
    EXPECT_EQ(seen, (std::vector<int>{4, 3, 2, 2, 1}));
  } while (std::next_permutation(order.begin(), order.end()));
  std::vector<int> none;
  arrange(none, std::less<>());
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace systole
