#pragma once
// Follows a container's log across interrupted streams: each line comes once and in order.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "operate/targets/kubernetes/kube_api.h"

namespace systole {

// Deduplicates the lines of a log that is read repeatedly, each stream starting at the second of the last line. Each
// line begins with its time (RFC 3339).
class LogLines {
 public:
  // Call before each stream. Returns the time to begin from, "" for all.
  std::string begin();
  // Takes a piece of the stream; returns complete new lines, without their times.
  std::string take(std::string_view piece);
  // Call at the regular end of a stream; returns an unfinished last line.
  std::string rest();

 private:
  bool line(std::string_view text, std::string& to);
  using Time = std::chrono::system_clock::time_point;
  std::string pending_;
  std::optional<Time> last_, passed_;  // time of the last line; the end of this stream's repetitions
  int at_last_ = 0, to_pass_ = 0;      // number of lines with the last time; how many of them are yet to be repeated
};

struct LogPlace {
  std::string name_space, pod, container;
};
// Follows until the container has ended and everything was passed on, the pod is gone, `give` returns false, or it is
// cancelled. Errors: io, the server is away for longer than the patience of `api`; a refusal.
Status follow_log(KubeApi& api, const LogPlace& place, LogLines& lines,
                  const std::function<bool(const std::string& lines)>& give, const std::function<bool()>& cancelled);
// The current log. Succeeds if there is nothing yet.
Result<std::string> read_log(KubeApi& api, const LogPlace& place, LogLines& lines);

}  // namespace systole
