#pragma once
// The rows of a matrix in a file, for a reader that converts them: any piece of them by any thread, one row at a time,
// so that no copy of the matrix in f32 is made.

#include <cstdint>
#include <functional>
#include <span>

#include "ground/base/result.h"
#include "ground/tensor/int4.h"

namespace systole {

using TakeRow = std::function<void(std::int64_t row, std::span<const float> numbers)>;

// Thread-safe.
struct StoredRows {
  // Calls take for each of the rows [first, last), in order. Errors: those of reading.
  std::function<Status(std::int64_t first, std::int64_t last, const TakeRow& take)> numbers;
  // Fills the groups of the rows [first, last), which are stored in four bits; empty: they are stored otherwise.
  // Errors: those of reading; unsupported: a minimum beyond f16.
  std::function<Status(std::int64_t first, std::int64_t last, std::span<Int4Block> into)> groups = {};
  // Pieces of a multiple of so many rows read nothing twice.
  std::int64_t together = 1;
};

}  // namespace systole
