#pragma once
// Chooses among many fault points those that a test tries: all in `make test-long`, a few drawn ones in `make test`.

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <numeric>
#include <random>
#include <vector>

namespace systole {

// A sorted subset of the points 0, 1, ... all - 1: all with SYSTOLE_TEST_LONG, otherwise `few`, drawn anew each time
// unless SYSTOLE_TEST_SEED is set. Prints the seed.
inline std::vector<int> drawn_points(int all, int few) {
  std::vector<int> points(static_cast<std::size_t>(all));
  std::iota(points.begin(), points.end(), 0);
  if (std::getenv("SYSTOLE_TEST_LONG") != nullptr) return points;
  const char* given = std::getenv("SYSTOLE_TEST_SEED");
  const unsigned long seed = given != nullptr ? std::strtoul(given, nullptr, 10) : std::random_device{}();
  std::mt19937_64 draw(seed);
  std::vector<int> drawn;
  std::sample(points.begin(), points.end(), std::back_inserter(drawn), few, draw);
  std::cout << "SYSTOLE_TEST_SEED=" << seed << ": the points";
  for (const int point : drawn) std::cout << " " << point;
  std::cout << " of " << all << "\n";
  return drawn;
}

}  // namespace systole
