#pragma once
// The output of a run's jobs on a cluster.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operate/runs/submitted_runs.h"

namespace systole {

// Assembles whole lines from pieces. With several jobs each line gets its job as a prefix.
class OutputLines {
 public:
  explicit OutputLines(bool prefixed) : prefixed_(prefixed) {}

  // `all`: includes unfinished lines.
  std::string of(const std::vector<OutputPiece>& pieces, bool all);

 private:
  std::string taken(const std::string& source, std::string& pending, std::size_t end) const;

  bool prefixed_;
  std::map<std::string, std::string> pending_;
};

// All existing output; if `last` > 0, at most that many lines of its end. Throws if it cannot be read.
std::string whole_output(Output& output, bool prefixed, std::int64_t last);

// Follows a run's output. If its cluster cannot be queried or read for a while, it reports that and later resumes
// without repeating a line. It gives up when the state is unknown for a minute.
class OutputFollower {
 public:
  struct Viewers {                                    // both are set
    std::function<void(const std::string&)> lines;    // output
    std::function<void(const std::string&)> message;  // a line beside the output
  };
  // Borrows all arguments.
  OutputFollower(const ClusterRun& run, Output& output, bool prefixed, Viewers viewers, Clock& clock)
      : run_(run), output_(output), lines_(prefixed), viewers_(std::move(viewers)), clock_(clock) {}

  // Shows new output. Returns the final state once the run is over and all output is shown. Throws permanent errors of
  // querying or reading.
  std::optional<RunState> turn();

 private:
  Seconds since(const std::optional<Seconds>& at) const { return at ? clock_.now() - *at : Seconds(); }
  void look();
  void cannot(const Error& why);

  const ClusterRun& run_;
  Output& output_;
  OutputLines lines_;
  Viewers viewers_;
  Clock& clock_;
  JobStatus status_{.state = RunState::queued};
  bool told_ = false;
  std::optional<Seconds> looked_at_, unknown_since_, away_since_;  // its cluster cannot be queried or read
};

}  // namespace systole
