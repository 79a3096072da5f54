#include "predict/plan/sized.h"

#include <algorithm>
#include <array>
#include <optional>

#include "predict/plan/piece_numbers.h"

namespace systole {
namespace {

bool same_but_rows(const ChunkPiece& a, std::int64_t rows_of_a, const ChunkPiece& b, std::int64_t rows_of_b) {
  return std::ranges::equal(a.dims, b.dims,
                            [&](std::int64_t x, std::int64_t y) { return x == y || x * rows_of_b == y * rows_of_a; });
}
bool same_but_rows(const AfterPiece&, std::int64_t, const AfterPiece&, std::int64_t) { return true; }

// They are only compared.
void forget_dims(ChunkPiece& piece) { piece.dims.clear(); }
void forget_dims(AfterPiece&) {}

// How often a body runs goes with the chunk's layers.
Status set_times(FunctionRecord& function, std::int64_t from, std::int64_t to) {
  for (StretchRecord& stretch : function) {
    if (!stretch.in_layers) continue;
    if (stretch.times % from != 0) return unlike("a repeat whose count the layers do not divide");
    stretch.times = stretch.times / from * to;
  }
  return {};
}
Status set_layers(ChunkPiece& piece, std::int64_t from, std::int64_t to) {
  TRY(set_times(piece.work.forward, from, to));
  return set_times(piece.work.backward, from, to);
}
Status set_layers(AfterPiece&, std::int64_t, std::int64_t) { return {}; }

template <typename Piece>
std::vector<std::int64_t> numbers_of(const Piece& piece) {
  std::vector<std::int64_t> numbers;
  visit_numbers(piece, [&](std::int64_t number) { numbers.push_back(number); });
  return numbers;
}

// A count at 0 layers, and what one more layer adds; nothing where it is no integer.
using Line = std::array<std::int64_t, 2>;
std::optional<Line> line_through(std::int64_t at_low, std::int64_t at_high, std::int64_t low, std::int64_t high) {
  if (at_low == at_high) return Line{at_low, 0};
  if ((at_high - at_low) % (high - low) != 0) return std::nullopt;
  const std::int64_t each = (at_high - at_low) / (high - low);
  return Line{at_low - each * low, each};
}

}  // namespace

template <typename Piece>
Result<Sized<Piece>> Sized<Piece>::of(const std::vector<Corner>& base, const std::vector<Corner>& other_rows,
                                      const std::vector<Corner>& other_fsdp) {
  Sized sized;
  sized.first_ = base[0];
  const PieceSizes& low = base[0].sizes;
  for (const std::vector<Corner>* corners : {&base, &other_rows, &other_fsdp})
    for (const Corner& corner : *corners)
      if (!alike(corner.piece, base[0].piece)) return unlike("other kernels at other sizes");
  for (std::size_t k = 0; k < other_rows.size(); ++k)
    if (!same_but_rows(base[k].piece, low.rows, other_rows[k].piece, other_rows[k].sizes.rows))
      return unlike("ops that are cut in another way");
  forget_dims(sized.first_.piece);
  const auto numbers = [](const std::vector<Corner>& corners) {
    std::vector<std::vector<std::int64_t>> all;
    for (const Corner& corner : corners) all.push_back(numbers_of(corner.piece));
    return all;
  };
  const auto here = numbers(base), there_rows = numbers(other_rows), there_fsdp = numbers(other_fsdp);
  const auto line = [&](const std::vector<std::vector<std::int64_t>>& values, std::size_t n) {
    return line_through(values.front()[n], values.back()[n], low.layers, base.back().sizes.layers);
  };
  for (std::size_t n = 0; n < here[0].size(); ++n) {
    const auto base_line = line(here, n);
    const auto rows_line = other_rows.empty() ? base_line : line(there_rows, n);
    const auto fsdp_line = other_fsdp.empty() ? base_line : line(there_fsdp, n);
    if (!base_line || !rows_line || !fsdp_line) return unlike("a count that layers do not divide");
    Count count{};
    for (std::size_t k = 0; k < 2; ++k) {
      if (const std::int64_t more = (*rows_line)[k] - (*base_line)[k]; more != 0) {
        const std::int64_t by = other_rows[0].sizes.rows - low.rows;
        if (more % by != 0) return unlike("a count that rows do not divide");
        count.by_row[k] = more / by;
      }
      // here = whole + part / fsdp, there = whole + part / other
      if (const std::int64_t less = (*base_line)[k] - (*fsdp_line)[k]; less != 0) {
        const std::int64_t other = other_fsdp[0].sizes.fsdp;
        count.part[k] = less * low.fsdp * other / (other - low.fsdp);
        if (count.part[k] * (other - low.fsdp) != less * low.fsdp * other || count.part[k] % low.fsdp != 0)
          return unlike("a count that fsdp does not divide");
      }
      count.whole[k] = (*base_line)[k] - count.by_row[k] * low.rows - count.part[k] / low.fsdp;
    }
    sized.counts_.push_back(count);
  }
  return sized;
}

template <typename Piece>
Result<Piece> Sized<Piece>::at(const PieceSizes& sizes) const {
  Piece piece = first_.piece;
  bool whole = true;
  visit_numbers(piece, [&, count = counts_.data()](std::int64_t& number) mutable {
    const Count& c = *count++;
    number = c.whole[0] + c.whole[1] * sizes.layers + (c.by_row[0] + c.by_row[1] * sizes.layers) * sizes.rows;
    const std::int64_t part = c.part[0] + c.part[1] * sizes.layers;
    if (part == 0) return;
    whole = whole && part % sizes.fsdp == 0;
    number += part / sizes.fsdp;
  });
  if (!whole) return unlike("a part of something is no whole number");
  TRY(set_layers(piece, first_.sizes.layers, sizes.layers));
  return piece;
}

template class Sized<ChunkPiece>;
template class Sized<AfterPiece>;

}  // namespace systole
