#include "describe/serving/piece_choice.h"

#include <algorithm>
#include <cmath>

#include "ground/base/error.h"

namespace systole {
namespace {

constexpr std::int64_t kTrusted = 64;  // runs after which a length that did not run may have become faster
constexpr std::int64_t kLongestTrusted = 1 << 20;
constexpr double kForgotten = 1.0 / 4;  // of what a time was higher before
constexpr double kHardlyMore = 1.25;
constexpr double kMostRuns = 64;  // in a step

// Rises at once, falls slowly.
Seconds followed(std::optional<Seconds> before, Seconds now) {
  return before ? std::max(now, *before + (now - *before) * kForgotten) : now;
}

}  // namespace

PieceChoice::PieceChoice(const std::vector<std::int64_t>& lengths, const std::vector<std::int64_t>& rows) {
  CHECK(!lengths.empty(), "no lengths of pieces");
  for (const std::int64_t length : lengths) runs_.push_back({.size = length});
  for (const std::int64_t count : rows) decodes_.push_back({.size = count});
}

// Of the smallest that holds it, else of the largest.
std::size_t PieceChoice::index_of(const BySize& sizes, std::int64_t size) {
  const auto holds = std::ranges::lower_bound(sizes, size, {}, &Timed::size);
  return static_cast<std::size_t>(std::min(holds - sizes.begin(), std::ssize(sizes) - 1));
}

void PieceChoice::ran(std::int64_t tokens, Seconds took) {
  if (tokens > runs_.back().size) return;
  ++runs_so_far_;
  Timed& run = runs_[index_of(runs_, tokens)];
  if (is_fresh(run) && run.seen > 1) {
    run.time = followed(run.time, took);
  } else {
    // The first time counts only until the second: memory is touched for the first time, too. A length that was tried
    // again and is no faster is tried later the next time.
    const bool stays = run.time && !is_fresh(run) && took >= *run.time * 0.8;
    run.trusted = stays ? std::min(2 * run.trusted, kLongestTrusted) : kTrusted;
    run.time = took;
  }
  run.at = runs_so_far_;
  ++run.seen;
}

void PieceChoice::decoded(std::int64_t rows, Seconds took) {
  if (decodes_.empty()) return;
  Timed& decode = decodes_[index_of(decodes_, rows)];
  decode.time = followed(decode.time, took);
  last_decode_ = decode;
}

Seconds PieceChoice::decode_time(std::int64_t rows) const {
  const std::size_t at = decodes_.empty() ? 0 : index_of(decodes_, rows);
  for (std::size_t i = at; i < decodes_.size(); ++i) {
    if (decodes_[i].time) return *decodes_[i].time;
  }
  for (std::size_t i = at; i-- > 0;) {
    if (decodes_[i].time) return *decodes_[i].time;
  }
  return expected(0).value_or(Seconds());  // nearly a run of as many tokens
}

// Of a length that has not run lately, by those beside it. Nothing: it is not its turn yet.
std::optional<Seconds> PieceChoice::guessed(std::size_t i) const {
  const auto line = [&](const Timed& a, const Timed& b) {
    const double slope = (*b.time - *a.time).count() / static_cast<double>(b.size - a.size);
    const Timed& from = a.size < runs_[i].size && runs_[i].size < b.size ? a : b;
    return *from.time + Seconds(std::max(slope, 0.0) * static_cast<double>(runs_[i].size - from.size));
  };
  const auto longer = std::find_if(runs_.begin() + static_cast<std::ptrdiff_t>(i) + 1, runs_.end(),
                                   [&](const Timed& run) { return is_fresh(run); });
  if (i == 0 || !runs_[i - 1].time) return longer == runs_.end() ? std::nullopt : longer->time;
  const Timed& shorter = runs_[i - 1];
  if (longer != runs_.end()) return line(shorter, *longer);
  if (i >= 2 && runs_[i - 2].time) return line(runs_[i - 2], shorter);
  if (last_decode_.time && last_decode_.size < shorter.size) return line(last_decode_, shorter);
  return line({.size = 0, .time = Seconds()}, shorter);
}

std::optional<Seconds> PieceChoice::expected(std::size_t i) const {
  const Timed& run = runs_[i];
  if (is_fresh(run)) return run.time;
  std::optional<Seconds> guess = guessed(i);
  if (run.time && (!guess || *run.time < *guess)) guess = run.time;
  return guess;
}

PieceChoice::Piece PieceChoice::within(Seconds time) const {
  for (std::size_t i = runs_.size(); i-- > 0;) {
    const std::optional<Seconds> one = expected(i);
    if (!one || *one > time) continue;
    const double most = is_fresh(runs_[i]) ? kMostRuns : 1;  // of what is a guess, one at a time
    const double runs = *one > Seconds() ? std::min(std::floor(time / *one), most) : most;
    return {static_cast<std::int64_t>(runs) * runs_[i].size, runs_[i].size};
  }
  return {};
}

PieceChoice::Piece PieceChoice::least() const {
  const Timed& shortest = runs_.front();
  if (!shortest.time) return {shortest.size, shortest.size};
  const std::int64_t run = within(*shortest.time * kHardlyMore).run;
  // One that takes less proves that the shortest was slow for once.
  const bool longer = time_of({run, run}) >= *shortest.time;
  return longer ? Piece{run, run} : Piece{shortest.size, shortest.size};
}

Seconds PieceChoice::time_of(const Piece& piece) const {
  const auto time = [&](std::int64_t tokens) { return expected(index_of(runs_, tokens)).value_or(Seconds()); };
  const std::int64_t whole = piece.tokens / piece.run, rest = piece.tokens % piece.run;
  return time(piece.run) * static_cast<double>(whole) + (rest > 0 ? time(rest) : Seconds());
}

}  // namespace systole
