#pragma once
// Sorts large items: their indices are sorted, and then each item is moved to its place.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace systole {

// Each item is moved at most twice, and there is no second vector of them. Not stable.
template <typename T, typename Before>
void arrange(std::vector<T>& items, const Before& before) {
  std::vector<std::size_t> from(items.size());  // item i is to be item from[i]
  std::iota(from.begin(), from.end(), std::size_t{0});
  std::ranges::sort(from, [&](std::size_t a, std::size_t b) { return before(items[a], items[b]); });
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (from[i] == i) continue;
    T first = std::move(items[i]);
    std::size_t at = i;
    while (from[at] != i) {
      items[at] = std::move(items[from[at]]);
      at = std::exchange(from[at], at);
    }
    items[at] = std::move(first);
    from[at] = at;
  }
}

}  // namespace systole
