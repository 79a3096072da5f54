#pragma once
// What a container writes, followed through whatever cuts the stream: lines come each once and in order.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "operate/cluster/kube_api.h"

namespace systole {

// The lines of a log that is read again and again, each stream from the second of the line that came last: those that
// came already are passed over. Each line begins with the time at which it was written (RFC 3339).
class LogLines {
 public:
  // Before each stream. The time to begin from, "" for all.
  std::string begin();
  // What came of it; returns the whole lines that are new, without their times.
  std::string take(std::string_view piece);
  // The stream came to its own end: a line without one, too.
  std::string rest();

 private:
  bool line(std::string_view text, std::string& to);
  using Time = std::chrono::system_clock::time_point;
  std::string pending_;
  std::optional<Time> last_, passed_;  // of the line that came last; up to where this stream repeats
  int at_last_ = 0, to_pass_ = 0;      // how many came of that time; how many of them are yet to be repeated
};

struct LogPlace {
  std::string name_space, pod, container;
};
// Until the container has ended and all was given, the pod is gone, `give` says false, or it is cancelled. Errors: io,
// the server is away for longer than the patience of `api`; a refusal.
Status follow_log(KubeApi& api, const LogPlace& place, LogLines& lines,
                  const std::function<bool(const std::string& lines)>& give, const std::function<bool()>& cancelled);
// What is there now. Fine when there is nothing yet.
Result<std::string> read_log(KubeApi& api, const LogPlace& place, LogLines& lines);

}  // namespace systole
