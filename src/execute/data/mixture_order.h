#pragma once
// The order of rows drawn from several sources: position in the run -> (source, its epoch, its row), in O(sources)
// time, without state. So a cursor of two numbers resumes a mixture exactly, on any number of ranks.
//
// Positions are cut into segments in which the sources' shares are constant: a segment ends where the schedule names
// other weights, and where a source has no rows left. In a segment share k is the integer q_k out of Q = 2^40, and
//   B_k(n) = floor(n (q_0 + .. + q_(k-1)) / Q)      A_k(n) = B_(k+1)(n) - B_k(n)
// is what source k has drawn after n rows: the A_k(n) add up to n, and |A_k(n) - n q_k / Q| < 1 for every n, so the
// shares never drift. A segment is cut into blocks of L rows; the last takes the remainder, so it has L to 2 L - 1, or
// fewer if it is the only one. Block [n, m) holds A_k(m) - A_k(n) rows of source k, which is above L q_k / Q - 2: L is a
// power of two with L q_k >= 2 Q, so no count is negative. Within a block a keyed permutation (row_order.h) spreads the
// sources; each takes its rows by number, A_k(n) .. A_k(m) - 1, and number i of a source of R rows is the row at
// position i mod R of its own epoch i / R.
//
// A source with a limit of epochs is exhausted at the first n with A_k(n) equal to what is left of it. There the
// segment ends: its last row has been drawn, and every row of it as often as it has epochs. Then `stop` ends the
// mixture, and `rescale` goes on with the shares of the others.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "execute/data/row_order.h"
#include "ground/base/result.h"

namespace systole {

enum class Exhausted { repeat, stop, rescale };

struct MixtureSource {
  std::string name;                    // with the seed, the key of its order: other sources do not change it
  std::int64_t rows = 0;               // of an epoch, at least 1
  std::optional<std::int64_t> epochs;  // at most so many; none: without end. Not with `repeat`
};

// From row `from` of the run on, rows are drawn in these proportions.
struct MixturePhase {
  std::int64_t from = 0;
  std::vector<double> shares;  // one of each source, of rows; 0: not in this phase
};

class MixtureOrder {
 public:
  // REQUIRES: sources with rows; phases from row 0 on, in ascending order; finite shares, not all 0 in a phase.
  // Errors: invalid if a share is too small for blocks of 2^20 rows: below 1 in 500,000.
  static Result<MixtureOrder> make(std::vector<MixtureSource> sources, std::span<const MixturePhase> phases,
                                   Exhausted exhausted, std::uint64_t seed);

  struct Row {
    std::size_t source = 0;
    std::int64_t epoch = 0, row = 0;  // of the source; row: as stored
    auto operator<=>(const Row&) const = default;
  };
  // REQUIRES: 0 <= position, below the end.
  Row at(std::int64_t position) const;
  // The same as a row of the sources' rows one after the other.
  std::int64_t joined_row(std::int64_t position) const;
  // Of all sources, one epoch of each: the length of the mixture's own epoch, in which a cursor counts.
  std::int64_t rows() const { return first_.back(); }

  // The rows of each source among the first `rows`. REQUIRES: rows up to the end. O(block).
  std::vector<std::int64_t> drawn(std::int64_t rows) const;
  // The number of positions, and the source whose last row ended them; none: without end.
  std::optional<std::int64_t> end() const { return end_; }
  std::size_t ended_by() const { return ended_by_; }
  const std::vector<MixtureSource>& sources() const { return sources_; }

 private:
  // Rows [from, from + length) of the run.
  struct Segment {
    std::int64_t from = 0, length = 0;
    std::int64_t block = 0;                                           // L
    std::vector<std::uint64_t> up_to;                                 // [sources + 1]: q_0 + .. + q_(k-1)
    std::vector<std::int64_t> before;                                 // [sources]: rows drawn before the segment
    std::int64_t drawn(std::size_t source, std::int64_t rows) const;  // A
  };
  struct Block {
    std::int64_t begin = 0, end = 0;  // in the segment
  };
  MixtureOrder(std::vector<MixtureSource> sources, std::uint64_t seed);
  Status add_phase(const MixturePhase& phase, std::int64_t until, Exhausted exhausted);
  std::int64_t most_rows(const Segment& segment, std::size_t& exhausted) const;
  const Segment& segment_at(std::int64_t position) const;
  static Block block_at(const Segment& segment, std::int64_t row);
  struct Drawn {
    std::size_t source = 0;
    std::int64_t number = 0;  // of all rows of the source
  };
  Drawn drawn_at(std::int64_t position) const;

  std::vector<MixtureSource> sources_;
  std::vector<RowOrder> orders_;
  std::vector<std::int64_t> first_;  // [sources + 1]: of the sources' rows one after the other
  std::vector<Segment> segments_;
  std::uint64_t block_seed_;
  std::optional<std::int64_t> end_;
  std::size_t ended_by_ = 0;
};

// Shares of rows that give `weights` in another unit: `units` of each source in its `rows` (tokens, documents, bytes).
std::vector<double> shares_of_rows(std::span<const double> weights, std::span<const std::int64_t> units,
                                   std::span<const std::int64_t> rows);
// In proportion to size^(1/temperature) of each source, the largest 1 and none 0: 1 draws in proportion to size; the
// larger, the more even.
std::vector<double> weights_by_size(std::span<const std::int64_t> sizes, double temperature);

}  // namespace systole
