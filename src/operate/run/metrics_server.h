#pragma once
// Serves a run's metrics over HTTP.

#include <memory>
#include <string>

#include "ground/net/http_server.h"
#include "operate/observe/run_metrics.h"

namespace systole {

// Serves at [HOST:]PORT, by default on loopback; null if `at` is empty. Errors: invalid, not_found, busy (the port is
// in use), io.
Result<std::unique_ptr<HttpServer>> serve_metrics(const std::string& at, const RunMetrics& metrics);

}  // namespace systole
