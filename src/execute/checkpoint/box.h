#pragma once
// An index box: the half-open range [start, end) of each dim of a logical tensor. A checkpoint describes the piece of a
// tensor that some bytes hold by a box; a device describes the part it owns by a box. The bytes of a box are dense,
// row-major, little-endian. A scalar's box has no dims and holds one element.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/tensor/shape.h"

namespace systole::checkpoint {

struct Box {
  std::vector<std::int64_t> start, end;

  static Box whole(const Shape& shape);
  std::size_t ndim() const { return start.size(); }
  Shape shape() const;                // end - start
  std::int64_t num_elements() const;  // REQUIRES: 0 <= start <= end, at most 2^62 elements
  bool empty() const;                 // some dim of size 0
  bool operator==(const Box&) const = default;
};

using systole::to_string;               // also for shapes, which are std::vectors
std::string to_string(const Box& box);  // "[0:4, 8:16]"

// Nothing if they share no element. REQUIRES: the same ndim.
std::optional<Box> intersect(const Box& a, const Box& b);

// Errors: invalid (negative or reversed range, another ndim, beyond `shape`), with the reason.
Status check_inside(const Box& box, const Shape& shape);

// Elements of `shape`; nothing if a size is negative or the count exceeds 2^62. (num_elements throws.)
std::optional<std::int64_t> checked_elements(const Shape& shape);

// A run of elements that is contiguous in the bytes of both `from` and `to`.
struct Run {
  std::int64_t from = 0;   // element offset in the bytes of box `from`
  std::int64_t to = 0;     // element offset in the bytes of box `to`
  std::int64_t count = 0;  // elements
};

// Calls `visit` for the runs of `part` in ascending order of `from`, until it fails.
// REQUIRES: `part` lies in both boxes.
Status for_each_run(const Box& part, const Box& from, const Box& to, const std::function<Status(const Run&)>& visit);

// Copies the elements of `part` from the bytes of box `from` into the bytes of box `to`.
void copy_part(const Box& part, std::int64_t element_bytes, const Box& from, std::span<const std::byte> source,
               const Box& to, std::span<std::byte> target);

// Splits a box into boxes of at most `max_elements` elements, each contiguous in the bytes of `box`, in the order of
// those bytes. An empty box gives none. REQUIRES: max_elements > 0.
std::vector<Box> cut(const Box& box, std::int64_t max_elements);

}  // namespace systole::checkpoint
