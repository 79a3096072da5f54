#include "operate/cli/access_log_option.h"

namespace systole::cli {

void add_access_log_option(Subcommand command, AccessLogOption& option) {
  command.add_option("--access-log", option.path,
                     "a file, or - for stdout: a line of JSON for each request, with the time of each of its parts; "
                     "`systole explain FILE` sums it up. Rename the file to rotate it");
  command.add_flag("--log-prompts", option.prompts, "prompts too stand in the access log").needs("--access-log");
}

void check_shared(const AccessLogOption& option) {
  if (option.path != "-") return;
  fail(error(ErrorKind::unsupported, "--access-log -: several processes serve, and each has a stdout of its own")
           .hinted("--access-log access.log: all of them append to it"));
}

AccessRecords::AccessRecords(const AccessLogOption& option, Clock& clock, ServedApi& api, HttpServerOptions& server) {
  if (!option.path.empty()) log_ = AccessLog::open(option.path, clock).value();
  api.logs_prompts = option.prompts;
  api.metrics = [this, model = api.model] { return times_.text(model) + (log_ ? log_->metrics(model) : ""); };
  server.access = [this](const HttpAccess& access) {
    times_.add(access);
    if (log_) log_->add(access);
  };
}

}  // namespace systole::cli
