#pragma once
// How many documents (or rows) have each length, in tokens. Exact: documents of n tokens together have fewer than
// sqrt(2n) + 1 different lengths, 45,000 for a billion tokens, so nothing has to be rounded into bins.

#include <cstdint>
#include <map>
#include <vector>

namespace systole {

struct LengthCount {
  std::int64_t length = 0, count = 0;
  bool operator==(const LengthCount&) const = default;
};

class LengthHistogram {
 public:
  // REQUIRES: length >= 1, count >= 0.
  void add(std::int64_t length, std::int64_t count = 1);
  void add(const LengthHistogram& other);  // histograms of shards add up to that of the whole

  std::int64_t count() const { return count_; }
  std::int64_t tokens() const { return tokens_; }
  double mean() const;
  std::vector<LengthCount> counts() const;  // ascending by length; none of them zero
  // The least length that at least `share` of all do not exceed; 0 if there are none. REQUIRES: 0 <= share <= 1.
  std::int64_t quantile(double share) const;
  std::int64_t longest() const { return quantile(1); }

  // Of the pieces that documents are cut into where rows have at most so many tokens. REQUIRES: longest >= 1.
  LengthHistogram in_pieces(std::int64_t longest) const;

 private:
  std::vector<std::int64_t> short_;              // counts by length, below kShort
  std::map<std::int64_t, std::int64_t> longer_;  // the others
  std::int64_t count_ = 0, tokens_ = 0;
};

}  // namespace systole
