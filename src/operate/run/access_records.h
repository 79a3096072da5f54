#pragma once
// The records of requests that a server keeps: histograms of their times for /metrics, and an access log.

#include <memory>
#include <string>

#include "execute/serve/access_log.h"
#include "execute/serve/api_routes.h"
#include "execute/serve/request_times.h"

namespace systole {

// As --access-log and --log-prompts have it.
struct AccessLogOption {
  std::string path;  // "-": stdout; empty: none
  bool prompts = false;

  // Errors: unsupported: several processes cannot write to it.
  Status check_shared() const;
};

class AccessRecords {
 public:
  // Has the server tell of its requests, and the routes of these records. It and the clock must outlive both.
  // Errors: as AccessLog::open.
  static Result<std::unique_ptr<AccessRecords>> open(const AccessLogOption& option, Clock& clock, ServedApi& api,
                                                     HttpServerOptions& server);
  AccessRecords(const AccessRecords&) = delete;
  AccessRecords& operator=(const AccessRecords&) = delete;

 private:
  AccessRecords() = default;

  RequestTimes times_;
  std::unique_ptr<AccessLog> log_;  // null: none is kept
};

}  // namespace systole
