#include "operate/cli/cluster_logs.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ground/process/signal_watch.h"

namespace systole::cli {
namespace {

// Whole lines of what comes in pieces.
class Lines {
 public:
  explicit Lines(bool prefixed) : prefixed_(prefixed) {}

  // With `all` also lines that have no end yet.
  std::string of(const std::vector<OutputPiece>& pieces, bool all) {
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

 private:
  std::string taken(const std::string& source, std::string& pending, std::size_t end) const {
    const std::string lines = pending.substr(0, end);
    pending.erase(0, end);
    return prefixed_ ? with_prefix(lines, source) : lines;
  }
  static std::string with_prefix(const std::string& lines, const std::string& prefix) {
    std::string text;
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t end = std::min(lines.find('\n', at), lines.size() - 1) + 1;
      text += prefix + ": " + lines.substr(at, end - at);
      at = end;
    }
    return text;
  }

  bool prefixed_;
  std::map<std::string, std::string> pending_;
};

std::string last_lines(const std::string& text, std::int64_t count) {
  if (count == 0) return text;
  std::size_t at = text.size();
  for (std::int64_t i = 0; i <= count && at != 0 && at != text.npos; ++i) at = text.rfind('\n', at - 1);
  return at == text.npos || at == 0 ? text : text.substr(at + 1);
}

// A run that is followed, through what keeps its cluster from being asked or read for a while.
class Following {
 public:
  Following(ClusterRun& run, Output& output, bool prefixed, Context& context)
      : run_(run), output_(output), lines_(prefixed), context_(context) {}

  // Shows what is new. Returns how it is over, once it is and all is shown.
  std::optional<Phase> turn() {
    if (!looked_at_ || since(looked_at_) >= kLookEvery) look();
    const bool over = is_over(seen_.phase) || since(unknown_since_) >= kPatience;
    const Result<std::vector<OutputPiece>> pieces = output_.more();
    if (!pieces.ok()) {
      cannot(pieces.error());
      return over && since(away_since_) >= kPatience ? std::optional(seen_.phase) : std::nullopt;
    }
    away_since_.reset();
    context_.out.stream(lines_.of(*pieces, over && pieces->empty()));
    return over && pieces->empty() ? std::optional(seen_.phase) : std::nullopt;
  }

 private:
  static constexpr Seconds kLookEvery{2.0}, kPatience{60.0};

  Seconds since(const std::optional<Seconds>& at) const { return at ? context_.clock.now() - *at : Seconds(); }
  void look() {
    looked_at_ = context_.clock.now();
    const Result<std::vector<Seen>> jobs = systole::look(*run_.cluster, run_.record);
    if (!jobs.ok()) return cannot(jobs.error());
    const Seen seen = overall(*jobs);
    if (!told_ || seen.phase != seen_.phase || seen.reason != seen_.reason)
      context_.out.message(fmt::format("[{}]", told(run_.record, seen)));
    told_ = true;
    if (seen.phase != Phase::unknown) unknown_since_.reset();
    if (seen.phase == Phase::unknown && !unknown_since_) unknown_since_ = looked_at_;
    seen_ = seen;
  }
  void cannot(const Error& why) {
    if (why.kind != ErrorKind::io) fail(why);
    if (!away_since_) context_.out.message(fmt::format("[{}; asking again]", why.message));
    if (!away_since_) away_since_ = context_.clock.now();
  }

  ClusterRun& run_;
  Output& output_;
  Lines lines_;
  Context& context_;
  Seen seen_{.phase = Phase::queued};
  bool told_ = false;
  std::optional<Seconds> looked_at_, unknown_since_, away_since_;  // its cluster cannot be asked or read
};

ExitCode follow(ClusterRun& run, Output& output, bool prefixed, Context& context) {
  const SignalWatch signals;
  Following following(run, output, prefixed, context);
  while (!signals.stop_requested() && !context.out.closed()) {
    if (const std::optional<Phase> over = following.turn()) return *over == Phase::done ? ExitCode::done : ExitCode::no;
    context.clock.sleep(output.pace());
  }
  return ExitCode::interrupted;  // it is not over
}

// All that is there; with `last` not more than so many lines of its end. What is much is given in parts; a run that
// writes on gives little at a time, and is not waited for.
std::string whole_output(Output& output, bool prefixed, std::int64_t last) {
  constexpr std::size_t kMuch = std::size_t{1} << 20;
  Lines lines(prefixed);
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

}  // namespace

ExitCode show_output(ClusterRun& run, const OutputOptions& options, Context& context) {
  const std::unique_ptr<Output> output = run.cluster->output(run.record, options.all).value();
  const bool prefixed = run.record.array || options.all;
  if (options.follow && options.last == 0) return follow(run, *output, prefixed, context);
  const std::string shown = whole_output(*output, prefixed, options.last);
  context.out.stream(shown);
  if (options.follow) return follow(run, *output, prefixed, context);
  const Seen seen = overall(run.look());
  if (shown.empty()) context.out.message(fmt::format("nothing yet: {}", told(run.record, seen)));
  Node node = run_node(run.record, std::span(&seen, 1), context.clock);
  context.out.json(node.set("output", shown));
  return ExitCode::done;
}

}  // namespace systole::cli
