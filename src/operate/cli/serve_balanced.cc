#include "operate/cli/serve_balanced.h"

#include <algorithm>

#include "ground/base/counted.h"
#include "ground/base/number_from.h"
#include "ground/process/machine.h"
#include "operate/cli/run_scene.h"
#include "operate/run/serve_replicas.h"

namespace systole::cli {
namespace {

constexpr std::int64_t kMostReplicas = 64;

// The program and options of one replica.
std::vector<std::string> replica_words(const BalancedServe& options) {
  std::vector<std::string> words{"/proc/self/exe", "serve"};
  words.insert(words.end(), options.words.begin(), options.words.end());
  const std::int64_t share =
      std::max<std::int64_t>(allowed_cores() / (options.replicas + (options.canary.empty() ? 0 : 1)), 1);
  const std::int64_t threads = options.threads > 0 ? options.threads : share;
  if (options.backend == "cpu") words.push_back(fmt::format("--threads={}", threads));
  return words;
}

// With the first replica's own words about the model.
Node document(const BalancedServe& options, const std::string& url, const Node& first) {
  Node node = Node::map();
  for (const Node::Entry& entry : first.entries())
    if (entry.key != "systole" && entry.key != "version") node.set(entry.key, entry.value);
  return node.set("url", url).set("replicas", options.replicas);
}

void check_canary(const BalancedServe& options) {
  if (options.canary_weight > 100)
    fail(error(ErrorKind::invalid, "--canary-weight: {} percent, at most 100", options.canary_weight)
             .hinted("--canary-weight 10"));
  if (options.follow)
    fail(error(ErrorKind::unsupported, "--canary: with --follow the replicas change to newer checkpoints by themselves")
             .hinted("leave --follow out; SIGHUP to the balancer has all serve the newest checkpoint"));
}

}  // namespace

std::string api_url(const NetAddress& address, const HttpServerOptions& server) {
  return fmt::format("{}://{}/v1", server.certificate.empty() ? "http" : "https", to_string(address));
}

ExitCode serve_balanced(const BalancedServe& options, Context& context) {
  if (options.replicas > kMostReplicas)
    fail(error(ErrorKind::invalid, "--replicas: {}, at most {}", counted(options.replicas, "process"), kMostReplicas)
             .hinted(fmt::format("--replicas {}", kMostReplicas)));
  // Each would take the same device, and most of its memory.
  if (options.backend != "cpu" && options.backend != "reference")
    fail(
        error(ErrorKind::unsupported, "--replicas: several processes on {} would take the same device", options.backend)
            .hinted("leave it out, or compute with --backend cpu"));
  if (!options.canary.empty()) check_canary(options);
  const ReplicasAsked asked{static_cast<int>(options.replicas),
                            replica_words(options),
                            options.run,
                            options.follow,
                            options.server,
                            options.grace,
                            options.canary,
                            static_cast<int>(options.canary_weight)};
  const auto begun = [&](const NetAddress& address, const Node& first) {
    const std::string url = api_url(address, options.server);
    const auto count = [&](const char* key, const char* noun) {
      return counted(number_from(first.text_at(key)).value_or(0), noun);
    };
    context.out.stream(fmt::format("{} at {}: {}, each with {} of {} at once\n", first.text_at("model"), url,
                                   counted(options.replicas, "replica"), count("slots", "sequence"),
                                   count("context", "token")));
    if (!options.canary.empty())
      context.out.notice(fmt::format("{}% of the requests go to '{}'", options.canary_weight, options.canary));
    context.out.json(document(options, url, first));
  };
  const ReplicasServed served = serve_replicas(asked, begun, scene_of(context).messages, context.clock).value();
  context.out.notice(fmt::format("balanced {} over {}; {} went to another one, {} failed; {}",
                                 counted(served.counts.requests, "request"), counted(options.replicas, "replica"),
                                 served.counts.retries, served.counts.failed, counted(served.restarts, "restart")));
  return ExitCode::done;
}

}  // namespace systole::cli
