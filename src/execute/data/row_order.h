#pragma once
// The order of rows in an epoch: a keyed permutation, evaluated at any position in O(1) time and memory. So a cursor of
// two numbers resumes any run exactly. It is a Feistel network of 6 rounds over the smallest even number of bits that
// holds the rows (Luby and Rackoff 1988); the round function is Philox keyed by the seed. A result beyond the rows is
// permuted again ("cycle walking", Black and Rogaway 2002), fewer than four times on average.

#include <cstdint>

namespace systole {

class RowOrder {
 public:
  // REQUIRES: rows >= 1. Not shuffled: the identity.
  RowOrder(std::int64_t rows, std::uint64_t seed, bool shuffled);
  // The row at `position` of `epoch`. REQUIRES: 0 <= position < rows.
  std::int64_t at(std::int64_t epoch, std::int64_t position) const;
  std::int64_t rows() const { return rows_; }

 private:
  std::uint64_t through(std::uint64_t epoch, std::uint64_t value) const;
  std::int64_t rows_;
  std::uint64_t seed_;
  bool shuffled_;
  int half_bits_ = 1;
};

}  // namespace systole
