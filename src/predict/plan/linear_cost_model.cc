#include "predict/plan/linear_cost_model.h"

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

std::vector<std::int64_t>* live_of(ChunkPiece& piece) { return &piece.live; }
std::vector<std::int64_t>* live_of(AfterPiece&) { return nullptr; }

// Clears the lists that are only compared, or evaluated at a few moments later.
void forget_lists(ChunkPiece& piece) {
  piece.dims.clear();
  piece.live.clear();
}
void forget_lists(AfterPiece&) {}

// The trip count of a repeat is proportional to the chunk's layers.
Status set_times(FunctionRecord& function, std::int64_t from, std::int64_t to) {
  for (StretchRecord& stretch : function) {
    if (!stretch.in_layers) continue;
    if (stretch.times % from != 0) return unlike("a repeat whose count the layers do not divide");
    stretch.times = stretch.times / from * to;
  }
  return {};
}
Status set_layers(ChunkPiece& piece, std::int64_t from, std::int64_t to) {
  if (from == to) return {};  // then the model may have several repeats
  TRY(set_times(piece.work.forward, from, to));
  return set_times(piece.work.backward, from, to);
}
Status set_layers(AfterPiece&, std::int64_t, std::int64_t) { return {}; }

void forget_recorded(ChunkPiece& piece) { piece.live_in_layers = 0; }
void forget_recorded(AfterPiece&) {}

template <typename Piece>
std::vector<std::int64_t> numbers_of(const Piece& piece) {
  std::vector<std::int64_t> numbers;
  visit_numbers(piece, [&](std::int64_t number) { numbers.push_back(number); });
  return numbers;
}

// A count as its value at 0 layers and its slope per layer; nothing where the slope is no integer.
using Line = std::array<std::int64_t, 2>;
std::optional<Line> line_through(std::int64_t at_low, std::int64_t at_high, std::int64_t low, std::int64_t high) {
  if (at_low == at_high) return Line{at_low, 0};
  if ((at_high - at_low) % (high - low) != 0) return std::nullopt;
  const std::int64_t each = (at_high - at_low) / (high - low);
  return Line{at_low - each * low, each};
}

// One count at all corners: the base, other rows and other fsdp, each at one or two numbers of layers.
struct CornerCounts {
  std::vector<std::int64_t> base, rows, fsdp;
};

using AtCorners = std::vector<std::vector<std::int64_t>>;  // by corner
CornerCounts nth(std::size_t n, const AtCorners& base, const AtCorners& rows, const AtCorners& fsdp) {
  CornerCounts counts;
  for (const auto& values : base) counts.base.push_back(values[n]);
  for (const auto& values : rows) counts.rows.push_back(values[n]);
  for (const auto& values : fsdp) counts.fsdp.push_back(values[n]);
  return counts;
}

// The moments of peak live bytes, one per corner; none where corners differ in the number of moments.
std::vector<std::size_t> busiest(const AtCorners& base, const AtCorners& rows, const AtCorners& fsdp) {
  std::vector<std::size_t> moments;
  for (const AtCorners* corners : {&base, &rows, &fsdp}) {
    for (const std::vector<std::int64_t>& live : *corners) {
      if (live.size() != base[0].size() || live.empty()) return {};
      const auto most = static_cast<std::size_t>(std::ranges::max_element(live) - live.begin());
      if (std::ranges::find(moments, most) == moments.end()) moments.push_back(most);
    }
  }
  return moments;
}

}  // namespace

template <typename Piece>
Result<LinearCostModel<Piece>> LinearCostModel<Piece>::of(const std::vector<Corner>& base,
                                                          const std::vector<Corner>& other_rows,
                                                          const std::vector<Corner>& other_fsdp) {
  LinearCostModel sized;
  sized.first_ = base[0];
  const PieceSizes& low = base[0].sizes;
  for (const std::vector<Corner>* corners : {&base, &other_rows, &other_fsdp})
    for (const Corner& corner : *corners)
      if (!alike(corner.piece, base[0].piece)) return unlike("other kernels at other sizes");
  for (std::size_t k = 0; k < other_rows.size(); ++k)
    if (!same_but_rows(base[k].piece, low.rows, other_rows[k].piece, other_rows[k].sizes.rows))
      return unlike("ops that are cut in another way");
  forget_lists(sized.first_.piece);
  const auto line = [&](const std::vector<std::int64_t>& values) {
    return line_through(values.front(), values.back(), low.layers, base.back().sizes.layers);
  };
  const auto sized_count = [&](const CornerCounts& counts) -> Result<Count> {
    const auto base_line = line(counts.base);
    const auto rows_line = counts.rows.empty() ? base_line : line(counts.rows);
    const auto fsdp_line = counts.fsdp.empty() ? base_line : line(counts.fsdp);
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
    return count;
  };
  const auto at_corners = [](const std::vector<Corner>& corners, const auto& numbers) {
    AtCorners all;
    for (const Corner& corner : corners) all.push_back(numbers(corner.piece));
    return all;
  };
  const AtCorners here = at_corners(base, numbers_of<Piece>), there_rows = at_corners(other_rows, numbers_of<Piece>),
                  there_fsdp = at_corners(other_fsdp, numbers_of<Piece>);
  for (std::size_t n = 0; n < here[0].size(); ++n)
    sized.counts_.push_back(TRY(sized_count(nth(n, here, there_rows, there_fsdp))));
  // These are only bounds, so a moment whose bytes are no such function is left out.
  const auto live = [](Piece piece) { return live_of(piece) ? *live_of(piece) : std::vector<std::int64_t>(); };
  const AtCorners live_here = at_corners(base, live), live_rows = at_corners(other_rows, live),
                  live_fsdp = at_corners(other_fsdp, live);
  for (const std::size_t moment : busiest(live_here, live_rows, live_fsdp)) {
    const Result<Count> count = sized_count(nth(moment, live_here, live_rows, live_fsdp));
    if (count.ok()) sized.live_.push_back(*count);
  }
  return sized;
}

template <typename Piece>
Result<Piece> LinearCostModel<Piece>::at(const PieceSizes& sizes) const {
  Piece piece = first_.piece;
  bool whole = true;
  const auto count_at = [&](const Count& c) {
    const std::int64_t number =
        c.whole[0] + c.whole[1] * sizes.layers + (c.by_row[0] + c.by_row[1] * sizes.layers) * sizes.rows;
    const std::int64_t part = c.part[0] + c.part[1] * sizes.layers;
    whole = whole && part % sizes.fsdp == 0;
    return number + part / sizes.fsdp;
  };
  visit_numbers(piece, [&, count = counts_.data()](std::int64_t& number) mutable { number = count_at(*count++); });
  if (!whole) return unlike("a part of something is no whole number");
  // A repeat of one layer is not a loop, and prefetches nothing for a next iteration.
  const bool as_recorded = sizes.layers > 1 || first_.sizes.layers <= 1;
  for (const Count& count : live_)
    if (as_recorded) live_of(piece)->push_back(count_at(count));
  if (sizes.rows != first_.sizes.rows || sizes.fsdp != first_.sizes.fsdp) forget_recorded(piece);
  TRY(set_layers(piece, first_.sizes.layers, sizes.layers));
  return piece;
}

template class LinearCostModel<ChunkPiece>;
template class LinearCostModel<AfterPiece>;

}  // namespace systole
