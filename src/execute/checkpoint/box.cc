#include "execute/checkpoint/box.h"

#include <algorithm>
#include <cstring>

namespace systole::checkpoint {

Box Box::whole(const Shape& shape) { return Box{std::vector<std::int64_t>(shape.size(), 0), shape}; }

Shape Box::shape() const {
  Shape sizes(start.size());
  for (std::size_t d = 0; d < start.size(); ++d) sizes[d] = end[d] - start[d];
  return sizes;
}

std::int64_t Box::num_elements() const { return systole::num_elements(shape()); }

bool Box::empty() const {
  for (std::size_t d = 0; d < start.size(); ++d) {
    if (start[d] >= end[d]) return true;
  }
  return false;
}

std::string to_string(const Box& box) {
  std::string text = "[";
  for (std::size_t d = 0; d < box.start.size(); ++d) {
    text += fmt::format("{}{}:{}", d ? ", " : "", box.start[d], box.end[d]);
  }
  return text + "]";
}

std::optional<Box> intersect(const Box& a, const Box& b) {
  CHECK(a.ndim() == b.ndim(), "boxes of {} and {} dims", a.ndim(), b.ndim());
  Box part = a;
  for (std::size_t d = 0; d < a.ndim(); ++d) {
    part.start[d] = std::max(a.start[d], b.start[d]);
    part.end[d] = std::min(a.end[d], b.end[d]);
    if (part.start[d] >= part.end[d]) return std::nullopt;
  }
  return part;
}

Status check_inside(const Box& box, const Shape& shape) {
  if (box.start.size() != shape.size() || box.end.size() != shape.size()) {
    return error(ErrorKind::invalid, "a box of {}/{} dims for the tensor {} of {}", box.start.size(), box.end.size(),
                 to_string(shape), shape.size());
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (box.start[d] < 0 || box.start[d] > box.end[d] || box.end[d] > shape[d]) {
      return error(ErrorKind::invalid, "box {} does not lie in the tensor {} (dim {})", to_string(box),
                   to_string(shape), d);
    }
  }
  return {};
}

std::optional<std::int64_t> checked_elements(const Shape& shape) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 62;
  std::int64_t count = 1;
  bool zero = false;
  for (std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) zero = true;
    if (size != 0 && count > kLimit / size) return std::nullopt;
    if (size != 0) count *= size;
  }
  return zero ? 0 : count;
}

namespace {

std::int64_t offset_in(const Box& box, const std::vector<std::int64_t>& index,
                       const std::vector<std::int64_t>& strides) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < index.size(); ++d) offset += (index[d] - box.start[d]) * strides[d];
  return offset;
}

// The outermost dim of a run: `part` spans both boxes in all dims after it, so a run is contiguous in both.
std::size_t first_dim_of_run(const Box& part, const Box& from, const Box& to) {
  std::size_t d = part.ndim();
  while (d > 0) {
    --d;
    const bool spans = part.start[d] == from.start[d] && part.end[d] == from.end[d] && part.start[d] == to.start[d] &&
                       part.end[d] == to.end[d];
    if (!spans) return d;
  }
  return 0;
}

}  // namespace

Status for_each_run(const Box& part, const Box& from, const Box& to, const std::function<Status(const Run&)>& visit) {
  if (part.empty()) return {};
  const std::size_t split = part.ndim() == 0 ? 0 : first_dim_of_run(part, from, to);
  std::int64_t count = 1;
  for (std::size_t d = split; d < part.ndim(); ++d) count *= part.end[d] - part.start[d];
  const auto from_strides = strides_of(from.shape()), to_strides = strides_of(to.shape());
  std::vector<std::int64_t> index = part.start;
  while (true) {
    TRY(visit(Run{offset_in(from, index, from_strides), offset_in(to, index, to_strides), count}));
    std::size_t d = split;
    for (; d > 0; --d) {
      if (++index[d - 1] < part.end[d - 1]) break;
      index[d - 1] = part.start[d - 1];
    }
    if (d == 0) return {};
  }
}

void copy_part(const Box& part, std::int64_t element_bytes, const Box& from, std::span<const std::byte> source,
               const Box& to, std::span<std::byte> target) {
  const Status copied = for_each_run(part, from, to, [&](const Run& run) -> Status {
    const auto at = static_cast<std::size_t>(run.from * element_bytes),
               into = static_cast<std::size_t>(run.to * element_bytes);
    const auto bytes = static_cast<std::size_t>(run.count * element_bytes);
    CHECK(at + bytes <= source.size() && into + bytes <= target.size(), "a run leaves its box");
    std::memcpy(target.data() + into, source.data() + at, bytes);
    return {};
  });
  copied.value();
}

std::vector<Box> cut(const Box& box, std::int64_t max_elements) {
  CHECK(max_elements > 0, "cut needs a positive size");
  std::vector<Box> pieces;
  if (box.empty()) return pieces;
  // Dims before `split` are fixed to one index, dim `split` is cut into ranges, dims after it stay whole.
  const Shape shape = box.shape();
  std::size_t split = shape.size();
  std::int64_t inner = 1;  // elements of the dims after `split`
  for (; split > 0 && inner * shape[split - 1] <= max_elements; --split) inner *= shape[split - 1];
  if (split == 0) return {box};
  --split;
  const std::int64_t rows = std::max<std::int64_t>(1, max_elements / inner);
  Box piece = box;
  for (std::size_t d = 0; d < split; ++d) piece.end[d] = piece.start[d] + 1;
  while (true) {
    for (std::int64_t row = box.start[split]; row < box.end[split]; row += rows) {
      piece.start[split] = row;
      piece.end[split] = std::min(row + rows, box.end[split]);
      pieces.push_back(piece);
    }
    std::size_t d = split;
    for (; d > 0; --d) {
      piece.end[d - 1] = ++piece.start[d - 1] + 1;
      if (piece.start[d - 1] < box.end[d - 1]) break;
      piece.start[d - 1] = box.start[d - 1];
      piece.end[d - 1] = piece.start[d - 1] + 1;
    }
    if (d == 0) return pieces;
  }
}

}  // namespace systole::checkpoint
