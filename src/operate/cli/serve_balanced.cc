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
std::vector<std::string> replica_words(const ServeCommandOptions& options) {
  std::vector<std::string> words{"/proc/self/exe", "serve"};
  const std::vector<std::string> given = options.given();
  words.insert(words.end(), given.begin(), given.end());
  const std::int64_t share = std::max<std::int64_t>(
      allowed_cores() / (options.replicas + !options.canary.empty() + !options.shadow.empty()), 1);
  const std::int64_t threads = options.threads > 0 ? options.threads : share;
  if (options.backend == "cpu") words.push_back(fmt::format("--threads={}", threads));
  return words;
}

// With the first replica's own words about the model.
Node document(const ServeCommandOptions& options, const std::string& url, const Node& first) {
  Node node = Node::map();
  for (const Node::Entry& entry : first.entries())
    if (entry.key != "systole" && entry.key != "version") node.set(entry.key, entry.value);
  return node.set("url", url).set("replicas", options.replicas);
}

// Of a canary or a shadow.
void check_beside(const ServeCommandOptions& options, const char* name, const std::string& model, std::int64_t weight) {
  if (model.empty()) return;
  if (weight > 100)
    fail(error(ErrorKind::invalid, "--{}-weight: {} percent, at most 100", name, weight)
             .hinted(fmt::format("--{}-weight 100", name)));
  if (!options.follow.empty())
    fail(error(ErrorKind::unsupported, "--{}: with --follow the replicas change to newer checkpoints by themselves",
               name)
             .hinted("leave --follow out; SIGHUP to the balancer has all serve the newest checkpoint"));
}

}  // namespace

ExitCode serve_balanced(const ServeCommandOptions& options, Context& context) {
  raise_open_files();
  const HttpServerOptions server = options.server().value();
  if (options.replicas > kMostReplicas)
    fail(error(ErrorKind::invalid, "--replicas: {}, at most {}", counted(options.replicas, "process"), kMostReplicas)
             .hinted(fmt::format("--replicas {}", kMostReplicas)));
  // Each would take the same device, and most of its memory.
  if (options.backend != "cpu" && options.backend != "reference")
    fail(error(ErrorKind::unsupported, "--{}: several processes on {} would take the same device",
               options.replicas > 1     ? "replicas"
               : options.canary.empty() ? "shadow"
                                        : "canary",
               options.backend)
             .hinted("leave it out, or compute with --backend cpu"));
  check_beside(options, "canary", options.canary, options.canary_weight);
  check_beside(options, "shadow", options.shadow, options.shadow_weight);
  const ReplicasAsked asked{static_cast<int>(options.replicas),
                            replica_words(options),
                            options.run,
                            options.followed(),
                            server,
                            Seconds(options.grace_s),
                            options.canary,
                            static_cast<int>(options.canary_weight),
                            options.shadow,
                            static_cast<int>(options.shadow_weight)};
  const auto begun = [&](const NetAddress& address, const Node& first) {
    const std::string url = api_url(address, server);
    const auto count = [&](const char* key, const char* noun) {
      return counted(number_from(first.text_at(key)).value_or(0), noun);
    };
    context.out.stream(fmt::format("{} at {}: {}, each with {} of {} at once\n", first.text_at("model"), url,
                                   counted(options.replicas, "replica"), count("slots", "sequence"),
                                   count("context", "token")));
    if (!options.canary.empty())
      context.out.notice(fmt::format("{}% of the requests go to '{}'", options.canary_weight, options.canary));
    if (!options.shadow.empty())
      context.out.notice(
          fmt::format("{}% of the requests are also sent to '{}'", options.shadow_weight, options.shadow));
    context.out.json(document(options, url, first));
  };
  const ReplicasServed served = serve_replicas(asked, begun, scene_of(context).messages, context.clock).value();
  context.out.notice(fmt::format("balanced {} over {}; {} went to another one, {} failed; {}",
                                 counted(served.counts.requests, "request"), counted(options.replicas, "replica"),
                                 served.counts.retries, served.counts.failed, counted(served.restarts, "restart")));
  return ExitCode::done;
}

}  // namespace systole::cli
