#include "operate/run/access_records.h"

namespace systole {

Status AccessLogOption::check_shared() const {
  if (path != "-") return {};
  return error(ErrorKind::unsupported, "--access-log -: several processes serve, and each has a stdout of its own")
      .hinted("--access-log access.log: all of them append to it");
}

Result<std::unique_ptr<AccessRecords>> AccessRecords::open(const AccessLogOption& option, Clock& clock, ServedApi& api,
                                                           HttpServerOptions& server) {
  std::unique_ptr<AccessRecords> records(new AccessRecords);
  if (!option.path.empty()) records->log_ = TRY(AccessLog::open(option.path, clock));
  api.logs_prompts = option.prompts;
  api.metrics = [&of = *records, model = api.model] {
    return of.times_.text(model) + (of.log_ ? of.log_->metrics(model) : "");
  };
  server.access = [&of = *records](const HttpAccess& access) {
    of.times_.add(access);
    if (of.log_) of.log_->add(access);
  };
  return records;
}

}  // namespace systole
