#include "execute/serve/text_vector.h"

#include <algorithm>
#include <cmath>

#include "ground/base/error.h"

namespace systole {
namespace {

void normalize_to_one(std::vector<float>& vector) {
  double sum = 0;
  for (const float x : vector) sum += static_cast<double>(x) * static_cast<double>(x);
  if (sum == 0) return;
  const double length = std::sqrt(sum);
  for (float& x : vector) x = static_cast<float>(static_cast<double>(x) / length);
}

}  // namespace

std::vector<float> text_vector(std::span<const float> states, std::int64_t size, const PoolingSpec& pooling) {
  const auto width = static_cast<std::size_t>(size);
  CHECK(size > 0 && !states.empty() && states.size() % width == 0, "{} numbers in rows of {}", states.size(), size);
  std::vector<float> vector(width);
  if (pooling.pooling == Pooling::mean) {
    std::vector<double> sums(width);
    for (std::size_t i = 0; i < states.size(); ++i) sums[i % width] += static_cast<double>(states[i]);
    const auto tokens = static_cast<double>(states.size() / width);
    std::ranges::transform(sums, vector.begin(), [&](double sum) { return static_cast<float>(sum / tokens); });
  } else {
    std::ranges::copy(pooling.pooling == Pooling::last ? states.last(width) : states.first(width), vector.begin());
  }
  if (pooling.normalize) normalize_to_one(vector);
  return vector;
}

void shorten(std::vector<float>& vector, std::int64_t dimensions, bool normalize) {
  CHECK(dimensions >= 1 && dimensions <= static_cast<std::int64_t>(vector.size()), "{} of {} dimensions", dimensions,
        vector.size());
  vector.resize(static_cast<std::size_t>(dimensions));
  if (normalize) normalize_to_one(vector);
}

}  // namespace systole
