#pragma once
// --access-log and --log-prompts of `systole serve`, and the records of requests that a server keeps: histograms of their
// times for /metrics, and the log.

#include <memory>
#include <string>

#include "execute/serve/access_log.h"
#include "execute/serve/api_routes.h"
#include "execute/serve/request_times.h"
#include "operate/cli/options.h"

namespace systole::cli {

struct AccessLogOption {
  std::string path;
  bool prompts = false;
};

void add_access_log_option(Subcommand command, AccessLogOption& option);

// Fails unless several processes can write to it.
void check_shared(const AccessLogOption& option);

class AccessRecords {
 public:
  // Has the server tell of its requests, and the routes of these records. It and the clock must outlive both.
  // Fails if the log cannot be opened.
  AccessRecords(const AccessLogOption& option, Clock& clock, ServedApi& api, HttpServerOptions& server);
  AccessRecords(const AccessRecords&) = delete;
  AccessRecords& operator=(const AccessRecords&) = delete;

 private:
  RequestTimes times_;
  std::unique_ptr<AccessLog> log_;  // null: none is kept
};

}  // namespace systole::cli
