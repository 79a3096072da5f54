#pragma once
// A run's events as metrics in the Prometheus text format (version 0.0.4), which a training process serves.
// Thread-safe.

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "describe/spec/run.h"

namespace systole {

struct MetricRow {
  const char *name, *type, *help;  // type: gauge or counter
};
const std::vector<MetricRow>& metric_rows();  // in the order of the text

class RunMetrics {
 public:
  void see(const Event& event);
  // Objects of data.cache as the run's start met them.
  void see_cache(std::int64_t hits, std::int64_t misses, Bytes fetched, std::int64_t damaged);
  std::string text() const;

 private:
  void set(const char* name, double value) { values_[name] = value; }
  void add(const char* name, double value) { values_[name] += value; }

  mutable std::mutex mutex_;
  std::string run_;
  std::map<std::string, double> values_;  // metrics without a label
  std::optional<TimeByCategory> seconds_;
};

}  // namespace systole
