#pragma once
// The order of steps where rows have buckets (packing.h): a step takes rows of one bucket. Position of a step in its
// epoch -> its bucket, and which rows it holds, in O(buckets) time, without state. So a cursor of two numbers, the
// epoch and the number of steps since it began, resumes exactly, on any number of readers.
//
// A step of the bucket of edge e has B_e = B x floor(T / e) rows, B the rows of a step at length T: at most B x T
// positions, more than half of that, and what divides B divides B_e. An epoch has ceil(n / B_e) steps for the n rows of
// a bucket, the last of them filled up with empty rows; or floor(n / B_e), if what fills no step is dropped. The steps
// of all buckets, one bucket after the other, are shuffled by a keyed permutation of the epoch (row_order.h), and so
// are the rows of a bucket among its steps, by one of their own. Every row is in exactly one step of an epoch; where
// remainders are dropped in at most one, and other ones are dropped in each epoch.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "execute/data/packing.h"
#include "execute/data/row_order.h"

namespace systole {

class BucketOrder {
 public:
  // `step_rows`: B. REQUIRES: a bucketed table with rows, step_rows >= 1. With drop_remainder: no `unfilled` bucket.
  BucketOrder(const Packing& packing, std::int64_t step_rows, std::uint64_t seed, bool drop_remainder);
  // The steps of an epoch; 0 if no bucket fills one and remainders are dropped.
  static std::int64_t steps_of(const Packing& packing, std::int64_t step_rows, bool drop_remainder);
  // A fingerprint of all that the order follows from: equal texts are the same rows in every step.
  static std::string name_of(const Packing& packing, std::int64_t step_rows, std::uint64_t seed, bool drop_remainder);
  // The edge of the first bucket whose rows fill no step; nothing: all fill one.
  static std::optional<std::int64_t> unfilled(const Packing& packing, std::int64_t step_rows);

  struct Step {
    std::size_t bucket = 0;
    std::int64_t number = 0;          // among the bucket's
    std::int64_t edge = 0, rows = 0;  // its length, and B_e
  };
  std::int64_t steps() const { return order_->rows(); }  // of an epoch
  // REQUIRES: 0 <= position < steps().
  Step at(std::int64_t epoch, std::int64_t position) const;
  // The stored row at place `place` of the step; below 0: empty. REQUIRES: 0 <= place < step.rows.
  std::int64_t row(std::int64_t epoch, const Step& step, std::int64_t place) const;

 private:
  struct Bucket {
    std::int64_t edge, step_rows, first_row, first_step;
    RowOrder rows;
  };
  std::vector<Bucket> buckets_;
  std::optional<RowOrder> order_;  // of all steps
};

}  // namespace systole
