#pragma once
// The pieces of one family of layouts, recorded from Programs of few sizes and evaluated at all sizes.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "predict/plan/corner_programs.h"
#include "predict/plan/linear_cost_model.h"

namespace systole {

// A cost model for each place of the recorded stages, by range of rows and between two values of fsdp.
template <typename Piece>
class PieceFamily {
 public:
  // `other_fsdp`: the other recorded value of fsdp; 0: only the canonical one.
  PieceFamily(CornerPrograms& corners, Candidate canonical, std::int64_t other_fsdp)
      : corners_(corners), canonical_(std::move(canonical)), other_fsdp_(other_fsdp) {}

  // `place`: among the recorded stages. Work after microbatches has no rows.
  Result<Piece> at(std::size_t place, const PieceSizes& sizes) {
    const LinearCostModel<Piece>& sized = *TRY(sized_at(place, std::is_same_v<Piece, AfterPiece> ? 1 : sizes.rows));
    return sized.at(sizes);
  }
  // Recorded with exactly these rows.
  Result<Piece> at_rows(std::size_t place, const PieceSizes& sizes) {
    const std::lock_guard lock(mutex_);
    const Result<Places>& places = between(sizes.rows, sizes.rows);
    return places.ok() ? places.value()[place].at(sizes) : places.error();
  }

 private:
  static constexpr std::int64_t kFewRows = 8, kManyRows = 4096;
  using Places = std::vector<LinearCostModel<Piece>>;

  Result<const LinearCostModel<Piece>*> sized_at(std::size_t place, std::int64_t rows) {
    const std::lock_guard lock(mutex_);
    std::int64_t low = rows <= kFewRows ? 1 : kFewRows, high = rows <= kFewRows ? kFewRows : kManyRows;
    if (rows > kManyRows || std::is_same_v<Piece, AfterPiece>) low = high = rows;
    while (true) {
      const Result<Places>& both = between(low, high);
      if (both.ok()) return &both.value()[place];
      if (low == high) return both.error();
      if (rows == low || rows == high) {
        low = high = rows;
        continue;
      }
      if (const Result<Places>& one = between(low, low); !one.ok()) return one.error();  // rows are not the cause
      const std::int64_t middle =
          std::max(low + 1, static_cast<std::int64_t>(std::sqrt(static_cast<double>(low * high))));
      (rows <= middle ? high : low) = middle;
    }
  }

  const Result<Places>& between(std::int64_t low, std::int64_t high) {
    const auto found = between_.find({low, high});
    if (found != between_.end()) return found->second;
    return between_.emplace(std::pair(low, high), recorded(low, high)).first->second;
  }

  Result<Places> recorded(std::int64_t low, std::int64_t high) {
    using Corners = std::vector<typename LinearCostModel<Piece>::Corner>;
    const auto stages = static_cast<std::size_t>(canonical_.pipe);
    std::size_t each = canonical_.staged() ? 2 : 1;  // corners that differ in layers
    std::vector<Corners> base(stages), other_rows(stages), other_fsdp(stages);
    const auto add = [&](std::initializer_list<std::pair<std::vector<Corners>*, Corner>> all) -> Status {
      std::vector<Corner> wanted;
      for (const auto& [to, corner] : all) {
        for (std::size_t k = 0; k < each; ++k) {
          wanted.push_back(corner);
          wanted.back().more_layers = k == 1;
        }
      }
      const auto made = TRY(corners_.at(wanted));
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        std::vector<Corners>& to = *(all.begin() + i / each)->first;
        for (std::size_t place = 0; place < stages; ++place) {
          const CornerStage& stage = (*made[i])[place];
          to[place].push_back({{wanted[i].candidate.fsdp, wanted[i].rows, stage.layers[0]}, piece_of(stage.pieces)});
        }
      }
      return {};
    };
    const auto at = [&](std::int64_t rows, std::int64_t fsdp) {
      Corner corner{canonical_, rows, false};
      corner.candidate.fsdp = fsdp;
      return corner;
    };
    TRY(add({{&base, at(low, canonical_.fsdp)}}));
    bool by_layers = false;  // else corners with other layers add nothing
    for (const Corners& corners : base)
      by_layers = by_layers || TRY(LinearCostModel<Piece>::of(corners, {}, {})).by_layers();
    if (!by_layers) each = 1;
    if (high != low && other_fsdp_ > 0) {  // in parallel
      TRY(add({{&other_rows, at(high, canonical_.fsdp)}, {&other_fsdp, at(low, other_fsdp_)}}));
    } else if (high != low) {
      TRY(add({{&other_rows, at(high, canonical_.fsdp)}}));
    } else if (other_fsdp_ > 0) {
      TRY(add({{&other_fsdp, at(low, other_fsdp_)}}));
    }
    Places places;
    for (std::size_t place = 0; place < stages; ++place)
      places.push_back(TRY(LinearCostModel<Piece>::of(base[place], other_rows[place], other_fsdp[place])));
    return places;
  }

  static const Piece& piece_of(const StagePieces& pieces) {
    if constexpr (std::is_same_v<Piece, AfterPiece>) {
      return pieces.after;
    } else {
      return pieces.chunks[0];
    }
  }

  CornerPrograms& corners_;
  const Candidate canonical_;
  const std::int64_t other_fsdp_;
  std::mutex mutex_;
  std::map<std::pair<std::int64_t, std::int64_t>, Result<Places>> between_;  // by rows at both ends
};

}  // namespace systole
