#pragma once
// The metrics of several replicas as one text of Prometheus' format (version 0.0.4): each sample gets a label `replica`,
// so that sums and single ones can be asked for; help and type of a metric stand there once, before its samples.
//
//   labelled_metrics({{0, "# TYPE a gauge\na 1\n"}, {1, "# TYPE a gauge\na{b=\"c\"} 2\n"}})
//   # TYPE a gauge
//   a{replica="0"} 1
//   a{b="c",replica="1"} 2

#include <string>
#include <utility>
#include <vector>

namespace systole {

// A line that is neither a comment nor a sample is left out.
std::string labelled_metrics(const std::vector<std::pair<int, std::string>>& texts);

}  // namespace systole
