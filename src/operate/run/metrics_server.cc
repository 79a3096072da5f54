#include "operate/run/metrics_server.h"

#include <fmt/format.h>

namespace systole {
namespace {

// Collectors are few, ask for little and read plain text. They show no token: a run on 0.0.0.0 serves whoever asks.
HttpServerOptions options_for(NetAddress bind, const RunMetrics& metrics) {
  HttpServerOptions options;
  options.bind = std::move(bind);
  options.routes = {{.method = "GET",
                     .pattern = "/metrics",
                     .handler =
                         [&metrics](const HttpServerRequest&, HttpResponder responder) {
                           responder.send({.type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics.text()});
                         },
                     .needs_token = false}};
  options.limits.head.head = std::size_t{8} << 10;
  options.limits.body = Bytes(0);
  options.limits.connections = 16;
  options.limits.head_time = options.limits.write_time = Seconds(5.0);
  options.error = [](const HttpFault& fault) {
    return HttpResponse{.status = fault.status, .type = "text/plain", .body = fault.message + "\n"};
  };
  return options;
}

}  // namespace

Result<std::unique_ptr<HttpServer>> serve_metrics(const std::string& at, const RunMetrics& metrics) {
  if (at.empty()) return std::unique_ptr<HttpServer>();
  const bool port_alone = at.find_first_not_of("0123456789") == at.npos;
  const Result<NetAddress> address = parse_address(port_alone ? "127.0.0.1:" + at : at);
  if (!address.ok())
    return error(ErrorKind::invalid, "--metrics: '{}' is no [HOST:]PORT", at)
        .hinted("--metrics 9090, or --metrics 0.0.0.0:9090 for whoever reaches this machine");
  return HttpServer::start(options_for(*address, metrics));
}

}  // namespace systole
