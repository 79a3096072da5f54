#pragma once
// How many tokens of prompts a step may compute beside running sequences, so that these wait for their next token no
// longer than a given time, whatever the machine's speed. Prompts are computed in runs of a few lengths; the choice
// learns how long a run of each length takes, and the decodes beside them, and gives as many runs as fit of the longest
// that fits.
//
// A length that has not run is judged by its neighbours: a run costs a constant and a time for each token (the weights are
// read once), so between two known lengths, and to the next after two, it lies on their line. So lengths are tried one
// after the other, the shortest first. What took long is believed at once and forgotten slowly; a length that was too
// slow is tried again after a while, less and less often if it stays so.
//
// Pure and deterministic: it knows no clock, times are told.

#include <cstdint>
#include <optional>
#include <vector>

#include "ground/base/units.h"

namespace systole {

// That a server keeps to unless its pieces are given: a fast reader does not see it.
constexpr Seconds kUsualHold{0.05};

class PieceChoice {
 public:
  // Some tokens of prompts, computed in runs of a length; 0: there is no room.
  struct Piece {
    std::int64_t tokens = 0, run = 0;
    bool operator==(const Piece&) const = default;
  };

  // Lengths of runs, and rows of decodes, as the device has functions for: what is between them costs the next longer.
  // REQUIRES: both ascend; some lengths.
  PieceChoice(const std::vector<std::int64_t>& lengths, const std::vector<std::int64_t>& rows);

  // A run of so many tokens, or a decode of so many rows, took so long. Longer runs than the longest are not counted.
  void ran(std::int64_t tokens, Seconds took);
  void decoded(std::int64_t rows, Seconds took);

  // The most tokens within so much time, of any number of prompts' tokens.
  Piece within(Seconds time) const;
  // The least that a step has, whatever it takes, so that prompts never starve: the shortest run, or the longest that
  // takes hardly more time.
  Piece least() const;
  // What tokens in runs of a length, and a decode of so many rows, are thought to take; 0 if nothing is known. REQUIRES:
  // piece.run is one of the lengths.
  Seconds time_of(const Piece& piece) const;
  Seconds decode_time(std::int64_t rows) const;

 private:
  struct Timed {
    std::int64_t size = 0;
    std::optional<Seconds> time = {};
    std::int64_t seen = 0;     // times
    std::int64_t at = 0;       // number of the run that was timed last
    std::int64_t trusted = 0;  // for so many runs after it
  };
  using BySize = std::vector<Timed>;
  static std::size_t index_of(const BySize& sizes, std::int64_t size);
  bool is_fresh(const Timed& run) const { return run.time && runs_so_far_ - run.at <= run.trusted; }
  std::optional<Seconds> expected(std::size_t i) const;
  std::optional<Seconds> guessed(std::size_t i) const;

  BySize runs_, decodes_;
  std::int64_t runs_so_far_ = 0;
  Timed last_decode_;  // nearly a run of as many tokens
};

}  // namespace systole
