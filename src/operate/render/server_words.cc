#include "operate/render/server_words.h"

#include <cmath>

#include "ground/base/errors.h"
#include "operate/render/quote.h"

namespace systole {
namespace {

struct Word {
  std::string text;
  bool expands = false;  // in a script
};

// As `systole serve` is typed (operate/cli/serve.cc).
std::vector<Word> words_of(const Workload& workload, const ClusterJob& job, const ServerPlace& place) {
  std::vector<Word> words = {{"systole"},  {"serve"},  {workload.serve.from}, {"--name"}, {job.run},
                             {"--listen"}, {"0.0.0.0"}};
  const auto option = [&](const char* name, std::string value, bool expands = false) {
    words.push_back({name});
    words.push_back({std::move(value), expands});
  };
  option("--port", place.port, true);
  option("--token-file", place.token_file, true);
  for (std::string& word : serve_options(workload)) words.push_back({std::move(word)});
  option("--grace", std::to_string(server_grace(job)));
  if (place.replicas > 1) option("--replicas", std::to_string(place.replicas));
  if (place.threads > 0) option("--threads", std::to_string(place.threads));
  if (job.devices_per_pod() > 0) option("--device", job.tpu() ? "tpu" : "gpu");
  return words;
}

}  // namespace

std::vector<std::string> serve_options(const Workload& workload) {
  const ServeSpec& serve = workload.serve;
  std::vector<std::string> words;
  const auto option = [&](const char* name, std::string value) {
    words.emplace_back(name);
    words.push_back(std::move(value));
  };
  option("--slots", std::to_string(serve.slots));
  option("--context", std::to_string(serve.context.value_or(workload.model.context())));
  option("--waiting", std::to_string(serve.waiting));
  if (serve.prefill_tokens) option("--prefill-tokens", std::to_string(*serve.prefill_tokens));
  if (is_packed_type(serve.parameter)) option("--weights", packed_name(serve.parameter));
  if (serve.cache != DType::f32) option("--cache-type", name_of(serve.cache));
  if (workload.num_devices() > 1) option("--ranks", std::to_string(workload.num_devices()));
  if (serve.tpot && !serve.prefill_tokens) option("--tpot", fmt::format("{}s", serve.tpot->count()));
  return words;
}

std::vector<std::string> server_words(const Workload& workload, const ClusterJob& job, const ServerPlace& place) {
  std::vector<std::string> words;
  for (Word& word : words_of(workload, job, place)) words.push_back(std::move(word.text));
  return words;
}

std::string server_line(const Workload& workload, const ClusterJob& job, const ServerPlace& place) {
  std::vector<Word> words = words_of(workload, job, place);
  words.front() = {"$program", true};
  std::string line;
  for (const Word& word : words) {
    if (!line.empty()) line += ' ';
    line += word.expands ? '"' + word.text + '"' : shell_word(word.text);
  }
  return line;
}

std::int64_t server_grace(const ClusterJob& job) {
  return static_cast<std::int64_t>(std::ceil((job.notice - kUntilUnlisted).count()));
}

Seconds startup_budget(const Workload& workload) {
  return 2 * workload.serve.cold_start.value_or(ServeSpec::kColdStart);
}

Result<std::int64_t> servers_of_machine(const Workload& workload, const ClusterJob& job,
                                        std::vector<std::string>& warnings) {
  const CountRange& replicas = *job.replicas;
  if (workload.num_devices() > 1 && replicas.least > 1)
    return key_error(ErrorKind::unsupported, "serve.replicas",
                     "{} on one machine, of a model that a mesh cuts over processes", replicas.least)
        .hinted("serve.replicas: 1, or take mesh out");
  if (job.devices_per_pod() > 0 && replicas.least > 1)
    return key_error(ErrorKind::unsupported, "serve.replicas",
                     "{}: several servers on one machine would take the same device", replicas.least)
        .hinted(
            "serve.replicas: 1; a further server is rendered with --run NAME-2 and --out; or render for kubernetes");
  if (replicas.elastic())
    warnings.push_back(
        fmt::format("serve.replicas: {}:{}, and nothing here adds servers when more requests wait: {} it is",
                    replicas.least, replicas.most, replicas.least));
  return replicas.least;
}

std::string asking_with(const std::string& token_file) {
  return fmt::format("printf 'header = \"Authorization: Bearer %s\"' \"$(grep -m 1 '^[^#]' {})\" | curl --config -",
                     token_file);
}

Status check_served(const Workload& workload, bool absolute, const char* where) {
  const std::string& from = workload.serve.from;
  if (from.empty())
    return key_error(ErrorKind::invalid, "serve.from", "nothing says where the model is {}", where)
        .hinted("serve.from: /models/FOLDER");
  if (from.find('\0') != from.npos) return key_error(ErrorKind::invalid, "serve.from", "a NUL can stand in no path");
  if (from.starts_with('-') || (absolute && !from.starts_with('/')))
    return key_error(ErrorKind::invalid, "serve.from", "'{}' is no path {}", comment_text(from), where)
        .hinted("serve.from: /models/FOLDER");
  if (!workload.serve.canary.from.empty())
    return key_error(ErrorKind::unsupported, "serve.canary", "requests are divided between models on Kubernetes alone")
        .hinted("take serve.canary out; `systole serve RUN --canary OTHER` divides them on one machine");
  return {};
}

}  // namespace systole
