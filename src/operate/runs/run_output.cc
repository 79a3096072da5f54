#include "operate/runs/run_output.h"

#include <algorithm>

namespace systole {
namespace {

constexpr Seconds kLookEvery{2.0}, kPatience{60.0};

std::string with_prefix(const std::string& lines, const std::string& prefix) {
  std::string text;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size() - 1) + 1;
    text += prefix + ": " + lines.substr(at, end - at);
    at = end;
  }
  return text;
}

std::string last_lines(const std::string& text, std::int64_t count) {
  if (count == 0) return text;
  std::size_t at = text.size();
  for (std::int64_t i = 0; i <= count && at != 0 && at != text.npos; ++i) at = text.rfind('\n', at - 1);
  return at == text.npos || at == 0 ? text : text.substr(at + 1);
}

}  // namespace

std::string OutputLines::of(const std::vector<OutputPiece>& pieces, bool all) {
  std::string text;
  for (const OutputPiece& piece : pieces) {
    std::string& pending = pending_[piece.source];
    pending += piece.text;
    text += taken(piece.source, pending, pending.rfind('\n') + 1);  // npos + 1 is 0
  }
  for (auto& [source, pending] : pending_)
    if (all && !pending.empty()) text += taken(source, pending, pending.size());
  return text;
}

std::string OutputLines::taken(const std::string& source, std::string& pending, std::size_t end) const {
  const std::string lines = pending.substr(0, end);
  pending.erase(0, end);
  return prefixed_ ? with_prefix(lines, source) : lines;
}

// Large output comes in pieces. A running job writes little at a time; do not wait for more.
std::string whole_output(Output& output, bool prefixed, std::int64_t last) {
  constexpr std::size_t kMuch = std::size_t{1} << 20;
  OutputLines lines(prefixed);
  std::string text;
  for (std::size_t came = kMuch; came >= kMuch;) {
    const std::vector<OutputPiece> pieces = output.more().value();
    came = 0;
    for (const OutputPiece& piece : pieces) came += piece.text.size();
    text += lines.of(pieces, came < kMuch);
    if (last > 0) text = last_lines(text, last);
  }
  return text;
}

std::optional<RunState> OutputFollower::turn() {
  if (!looked_at_ || since(looked_at_) >= kLookEvery) look();
  const bool over = is_over(status_.state) || since(unknown_since_) >= kPatience;
  const Result<std::vector<OutputPiece>> pieces = output_.more();
  if (!pieces.ok()) {
    cannot(pieces.error());
    return over && since(away_since_) >= kPatience ? std::optional(status_.state) : std::nullopt;
  }
  away_since_.reset();
  viewers_.lines(lines_.of(*pieces, over && pieces->empty()));
  return over && pieces->empty() ? std::optional(status_.state) : std::nullopt;
}

void OutputFollower::look() {
  looked_at_ = clock_.now();
  const Result<RunStatus> all = run_.settle();
  if (!all.ok()) return cannot(all.error());
  const JobStatus status = all->overall();
  if (!told_ || status.state != status_.state || status.reason != status_.reason)
    viewers_.message(fmt::format("[{}]", describe_status(run_.record, status)));
  told_ = true;
  if (status.state != RunState::unknown) unknown_since_.reset();
  if (status.state == RunState::unknown && !unknown_since_) unknown_since_ = looked_at_;
  status_ = status;
}

void OutputFollower::cannot(const Error& why) {
  if (why.kind != ErrorKind::io) fail(why);
  if (!away_since_) viewers_.message(fmt::format("[{}; asking again]", why.message));
  if (!away_since_) away_since_ = clock_.now();
}

}  // namespace systole
