#include "execute/data/bucket_order.h"

#include "describe/lengths/bucket_edges.h"
#include "ground/base/error.h"
#include "ground/base/hash.h"

namespace systole {

BucketOrder::BucketOrder(const Packing& packing, std::int64_t step_rows, std::uint64_t seed, bool drop_remainder) {
  CHECK(packing.policy == PackingPolicy::bucketed && !packing.buckets.empty() && step_rows >= 1,
        "an order of steps of {} rows over {} buckets", step_rows, packing.buckets.size());
  std::int64_t steps = 0;
  for (std::size_t b = 0; b < packing.buckets.size(); ++b) {
    const auto [edge, first_row] = packing.buckets[b];
    const std::int64_t rows = packing.bucket_rows(b), each = rows_of_bucket(step_rows, packing.sequence_length, edge),
                       here = steps_of_bucket(rows, each, drop_remainder);
    // A key by the edge: one of another bucket's order would draw rows of equal places together.
    const std::uint64_t key = hash64(fmt::format("bucket {}", edge), seed);
    buckets_.push_back({edge, each, first_row, steps, RowOrder(rows, key, true)});
    steps += here;
  }
  order_.emplace(steps, seed, true);
}

std::int64_t BucketOrder::steps_of(const Packing& packing, std::int64_t step_rows, bool drop_remainder) {
  std::int64_t steps = 0;
  for (std::size_t b = 0; b < packing.buckets.size(); ++b) {
    const std::int64_t each = rows_of_bucket(step_rows, packing.sequence_length, packing.buckets[b].edge);
    steps += steps_of_bucket(packing.bucket_rows(b), each, drop_remainder);
  }
  return steps;
}

std::string BucketOrder::name_of(const Packing& packing, std::int64_t step_rows, std::uint64_t seed,
                                 bool drop_remainder) {
  std::string parts = fmt::format("seed {} {}", seed, drop_remainder ? "full" : "all");
  for (std::size_t b = 0; b < packing.buckets.size(); ++b) {
    const std::int64_t edge = packing.buckets[b].edge;
    parts += fmt::format(", {}: {} by {}", edge, packing.bucket_rows(b),
                         rows_of_bucket(step_rows, packing.sequence_length, edge));
  }
  return to_hex(hash128(parts));
}

std::optional<std::int64_t> BucketOrder::unfilled(const Packing& packing, std::int64_t step_rows) {
  for (std::size_t b = 0; b < packing.buckets.size(); ++b) {
    const std::int64_t edge = packing.buckets[b].edge;
    if (packing.bucket_rows(b) < rows_of_bucket(step_rows, packing.sequence_length, edge)) return edge;
  }
  return std::nullopt;
}

BucketOrder::Step BucketOrder::at(std::int64_t epoch, std::int64_t position) const {
  const std::int64_t step = order_->at(epoch, position);
  std::size_t b = buckets_.size() - 1;
  while (buckets_[b].first_step > step) --b;
  const Bucket& bucket = buckets_[b];
  return {b, step - bucket.first_step, bucket.edge, bucket.step_rows};
}

std::int64_t BucketOrder::row(std::int64_t epoch, const Step& step, std::int64_t place) const {
  const Bucket& bucket = buckets_[step.bucket];
  CHECK(place >= 0 && place < bucket.step_rows, "place {} of a step of {}", place, bucket.step_rows);
  const std::int64_t position = step.number * bucket.step_rows + place;
  return position < bucket.rows.rows() ? bucket.first_row + bucket.rows.at(epoch, position) : -1;
}

}  // namespace systole
