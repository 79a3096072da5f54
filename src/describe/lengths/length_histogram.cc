#include "describe/lengths/length_histogram.h"

#include <cmath>

#include "ground/base/result.h"

namespace systole {
namespace {

constexpr std::int64_t kShort = 65536;  // below it, counts lie in a vector

}  // namespace

void LengthHistogram::add(std::int64_t length, std::int64_t count) {
  CHECK(length >= 1 && count >= 0, "{} of length {}", count, length);
  if (count == 0) return;
  count_ += count;
  tokens_ += length * count;
  if (length >= kShort) {
    longer_[length] += count;
    return;
  }
  const auto at = static_cast<std::size_t>(length);
  if (at >= short_.size()) short_.resize(at + 1);
  short_[at] += count;
}

void LengthHistogram::add(const LengthHistogram& other) {
  for (const auto& [length, count] : other.counts()) add(length, count);
}

double LengthHistogram::mean() const {
  return count_ == 0 ? 0 : static_cast<double>(tokens_) / static_cast<double>(count_);
}

std::vector<LengthCount> LengthHistogram::counts() const {
  std::vector<LengthCount> all;
  for (std::size_t length = 0; length < short_.size(); ++length)
    if (short_[length] > 0) all.push_back({static_cast<std::int64_t>(length), short_[length]});
  for (const auto& [length, count] : longer_) all.push_back({length, count});
  return all;
}

std::int64_t LengthHistogram::quantile(double share) const {
  const auto wanted = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(count_)));
  std::int64_t seen = 0, last = 0;
  for (const auto& [length, count] : counts()) {
    seen += count;
    last = length;
    if (seen >= wanted) break;
  }
  return last;
}

LengthHistogram LengthHistogram::in_pieces(std::int64_t longest) const {
  LengthHistogram pieces;
  for (const auto& [length, count] : counts()) {
    pieces.add(longest, length / longest * count);
    if (length % longest > 0) pieces.add(length % longest, count);
  }
  return pieces;
}

}  // namespace systole
