#pragma once
// Where the time of a server's requests goes, from its access log (execute/serve/access_log.h): by part, the median and
// the 95th percentile, and in one sentence what the usual and the slow ones wait for.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/document.h"
#include "ground/base/units.h"

namespace systole {

class RequestReport {
 public:
  // One line of the log. False: it is no line of one, as a torn last one.
  bool add(std::string_view line);

  std::int64_t requests() const { return static_cast<std::int64_t>(totals_.size()); }  // that the model answered
  std::string text(int width) const;  // in columns of a terminal. REQUIRES: there are some
  Node node() const;                  // the same

 private:
  struct Part {
    std::string name;
    double p50 = 0, p95 = 0, share = 0, slow_share = 0;  // of all time, and of that of the slowest
  };
  std::vector<std::size_t> slowest() const;
  std::vector<Part> parts() const;
  std::string why(const std::vector<Part>& parts) const;

  std::vector<double> totals_, first_tokens_;
  std::map<std::string, std::vector<double>> parts_;  // 0 where a request has not been in it; as many as totals_
  std::int64_t refused_ = 0, gone_ = 0, others_ = 0, unreadable_ = 0;
};

}  // namespace systole
