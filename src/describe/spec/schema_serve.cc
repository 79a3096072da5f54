// Keys of serving: slots and cache as of `systole serve`, the latency that is wanted, and the traffic that is expected.
#include <algorithm>
#include <limits>

#include "describe/spec/codec_parts.h"
#include "describe/spec/schema.h"

namespace systole {
namespace {

constexpr std::int64_t kMostTokens = 100'000'000, kMostRequests = 1'000'000;
constexpr double kMostRate = 1e6;

const Condition kServed{"workload", {"serve"}};

// A number alone is the mean.
Result<Node> mean_of(const Node& count) { return Node::map({{"mean", count}}); }

// Requests per second; not printed when unset.
Codec rate_codec() {
  Codec codec = optional_codec<double>(
      "number", AT(serve.traffic.rate),
      [](const Node& node) -> Result<double> {
        const double rate = TRY(node.as_double());
        if (rate > 0 && rate <= kMostRate) return rate;
        return error(ErrorKind::invalid, "{} is no number of requests a second", node.text())
            .at(node.where())
            .hinted("a number above 0: 2.5");
      },
      [](const double& rate) { return Node(rate); });
  codec.range = "above 0";
  return codec;
}

Codec prefill_codec() {
  Codec codec = optional_codec<std::int64_t>(
      "count", AT(serve.prefill_tokens),
      [](const Node& node) -> Result<std::int64_t> {
        const std::int64_t tokens = TRY(read_count(node, 16, 512));
        if (ServeSpec::may_prefill(tokens)) return tokens;
        return error(ErrorKind::invalid, "{} is no power of two", tokens)
            .at(node.where())
            .hinted("16, 32, 64, 128, 256 or 512");
      },
      [](const std::int64_t& tokens) { return Node(tokens); });
  codec.range = "a power of two, 16 to 512";
  return codec;
}

Codec distribution_codec(Field<TokenLengths::Distribution> at) {
  using Distribution = TokenLengths::Distribution;
  return choice_codec<Distribution>(
      at, {{"fixed", Distribution::fixed}, {"uniform", Distribution::uniform}, {"lognormal", Distribution::lognormal}});
}

struct LengthFields {
  const char* of;  // "prompt"
  const char* doc;
  const char* mean;
  Field<std::int64_t> mean_at;
  Field<TokenLengths::Distribution> distribution_at;
  Field<double> sigma_at;
};

void add_length_keys(Schema& schema, const LengthFields& lengths) {
  const std::string section = std::string("serve.traffic.") + lengths.of;
  schema.sections.push_back({section, lengths.doc, mean_of, "a number alone is the mean"});
  schema.keys.push_back({.path = section + ".mean",
                         .codec = count_codec(lengths.mean_at, 1, kMostTokens),
                         .doc = "Tokens, on average.",
                         .default_yaml = lengths.mean,
                         .when = kServed});
  schema.keys.push_back({.path = section + ".distribution",
                         .codec = distribution_codec(lengths.distribution_at),
                         .doc = "fixed: all alike. uniform: 1 to twice the mean less 1. lognormal: many short ones and "
                                "few long ones, as in chats.",
                         .default_yaml = "fixed",
                         .when = kServed});
  schema.keys.push_back({.path = section + ".sigma",
                         .codec = number_codec(lengths.sigma_at, 0, 5, true),
                         .doc = "Standard deviation of the logarithm.",
                         .default_yaml = "0.8",
                         .when = {section + ".distribution", {"lognormal"}}});
}

void add_server_keys(std::vector<Key>& keys) {
  keys.push_back({.path = "serve.slots",
                  .codec = count_codec(AT(serve.slots), 1, 65'536),
                  .doc = "Sequences that are computed at once (`systole serve --slots`).",
                  .more = "Their keys and values have their memory from the start. A decode step computes the next "
                          "power of two of sequences; that of an encoder-decoder all slots.",
                  .default_yaml = "4",
                  .when = kServed});
  keys.push_back({.path = "serve.context",
                  .codec = optional_count_codec(AT(serve.context), 1, kMostTokens),
                  .doc =
                      "Tokens of one sequence, prompt and answer (`systole serve --context`). Without it, the model's "
                      "context.",
                  .optional = true,
                  .when = kServed});
  keys.push_back({.path = "serve.waiting",
                  .codec = count_codec(AT(serve.waiting), 0, kMostRequests),
                  .doc = "Requests that wait for a slot; one more is refused (`systole serve --waiting`).",
                  .default_yaml = "64",
                  .when = kServed});
  keys.push_back({.path = "serve.prefill_tokens",
                  .codec = prefill_codec(),
                  .doc = "Tokens of prompts in a step that has tokens of running answers too (`systole serve "
                         "--prefill-tokens`). Without it, as many as keep such a step within 50 ms, as it is measured.",
                  .optional = true,
                  .when = kServed});
  keys.push_back(
      {.path = "serve.parameter",
       .codec = choice_codec<DType>(
           AT(serve.parameter), {{"f32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16}, {"i8", DType::i8}}),
       .doc = "Element type in which the parameters are kept. i8: the matrices alone (`systole serve --weights int8`).",
       .more = "Else `systole serve` keeps a run's as train.precision.parameter has them, and a published "
               "model's in f32. Computing is in f32.",
       .default_yaml = "f32",
       .when = kServed});
  keys.push_back({.path = "serve.cache",
                  .codec = choice_codec<DType>(AT(serve.cache), {{"f32", DType::f32}, {"bf16", DType::bf16}}),
                  .doc = "Element type in which keys and values are kept (`systole serve --cache-type`).",
                  .more = "bf16: half the memory, and half of what a decode step reads of them; each number is rounded "
                          "once, when it is written. Of an encoder-decoder f32.",
                  .default_yaml = "f32",
                  .when = kServed});
  keys.push_back({.path = "serve.objective.ttft",
                  .codec = optional_seconds_codec(AT(serve.ttft)),
                  .doc = "95 of 100 requests have their first token within this time of their arrival.",
                  .optional = true,
                  .when = kServed});
  keys.push_back({.path = "serve.objective.tpot",
                  .codec = optional_seconds_codec(AT(serve.tpot)),
                  .doc = "95 of 100 requests have each further token within this time, on average of the answer.",
                  .more =
                      "Prompts are computed in pieces that keep a step within it (`systole serve --tpot`), or within "
                      "50 ms where it is not said.",
                  .optional = true,
                  .when = kServed});
}

void add_traffic_keys(Schema& schema) {
  std::vector<Key>& keys = schema.keys;
  const char* group = "traffic";
  keys.push_back(
      {.path = "serve.traffic.rate",
       .codec = rate_codec(),
       .doc = "Requests a second, at random times (a Poisson process). One of rate, users and trace is given.",
       .optional = true,
       .when = kServed,
       .group = group});
  keys.push_back({.path = "serve.traffic.users",
                  .codec = optional_count_codec(AT(serve.traffic.users), 1, kMostRequests),
                  .doc = "People who each wait for their answer before they ask again.",
                  .optional = true,
                  .when = kServed,
                  .group = group});
  keys.push_back({.path = "serve.traffic.trace",
                  .codec = text_codec(AT(serve.traffic.trace)),
                  .doc = "File of recorded requests, a line each: {\"at\": SECONDS, \"prompt\": TOKENS, \"answer\": "
                         "TOKENS}.",
                  .more =
                      "Prompt, answer and requests are then the file's. \"key\" may stand beside them: whose request "
                      "it is, between whom the scheduler is fair.",
                  .optional = true,
                  .when = kServed,
                  .group = group});
  keys.push_back({.path = "serve.traffic.pause",
                  .codec = optional_seconds_codec(AT(serve.traffic.pause)),
                  .doc = "Mean time of a user from an answer to the next request. Without it, none.",
                  .optional = true,
                  .when = {"serve.traffic.users", {}}});
  keys.push_back({.path = "serve.traffic.requests",
                  .codec = count_codec(AT(serve.traffic.requests), 100, kMostRequests),
                  .doc = "Requests that are simulated. More narrow the intervals, and take longer.",
                  .more = "A device is planned for no more users than these.",
                  .default_yaml = "2000",
                  .when = kServed});
  keys.push_back({.path = "serve.traffic.seed",
                  .codec = count_codec(AT(serve.traffic.seed), 0, std::numeric_limits<std::int64_t>::max()),
                  .doc = "Of arrivals and lengths.",
                  .default_yaml = "0",
                  .when = kServed});
}

void add_cluster_keys(std::vector<Key>& keys) {
  keys.push_back(
      {.path = "serve.from",
       .codec = text_codec(AT(serve.from)),
       .doc = "What is served on a cluster (`systole serve` takes it): the folder of a run or of a Hugging Face "
              "model, or a GGUF file, as a pod or a machine there has it.",
       .more = "In a pod: in a claim, a volume or the image.",
       .optional = true,
       .when = kServed});
  keys.push_back({.path = "serve.replicas",
                  .codec = optional_range_codec(AT(serve.replicas), 1, 10'000),
                  .doc = "Servers on a cluster, each on one device. Of a range, as 2:6, the cluster keeps as many as "
                         "the waiting requests need.",
                  .more = "Without it, `systole render` plans how many devices of resources.accelerators carry the "
                          "traffic, and takes up to twice as many.",
                  .optional = true,
                  .when = kServed});
  keys.push_back({.path = "serve.cold_start",
                  .codec = optional_seconds_codec(AT(serve.cold_start)),
                  .doc = "Time from the start of a server until it answers. Without it, 5 minutes. A pod that is not "
                         "ready after twice this time is begun again.",
                  .optional = true,
                  .when = kServed});
  keys.push_back({.path = "serve.ingress.host",
                  .codec = text_codec(AT(serve.ingress.host)),
                  .doc = "The name by which an Ingress of the cluster gives requests to the servers, over TLS alone.",
                  .optional = true,
                  .when = kServed});
  keys.push_back({.path = "serve.ingress.tls_secret",
                  .codec = text_codec(AT(serve.ingress.tls_secret)),
                  .doc = "The Secret (kubernetes.io/tls) with the certificate of that name.",
                  .optional = true,
                  .when = kServed});
  keys.push_back({.path = "serve.ingress.class",
                  .codec = text_codec(AT(serve.ingress.controller)),
                  .doc =
                      "The class of the Ingress: whose controller it is, and so which networks reach it. Without it, "
                      "the cluster's default.",
                  .optional = true,
                  .when = kServed});
  keys.push_back(
      {.path = "serve.ingress.gateway",
       .codec = text_codec(AT(serve.ingress.gateway)),
       .doc = "The class of a Gateway (Gateway API) with an HTTPRoute, which are made instead of an Ingress.",
       .optional = true,
       .when = kServed});
  keys.push_back({.path = "serve.canary.from",
                  .codec = text_codec(AT(serve.canary.from)),
                  .doc =
                      "A newer model, as serve.from: servers of it on a cluster answer a part of the requests, under "
                      "the same name.",
                  .optional = true,
                  .when = kServed});
  keys.push_back({.path = "serve.canary.weight",
                  .codec = count_codec(AT(serve.canary.weight), 1, 99),
                  .doc = "Percent of the requests that they answer.",
                  .more = "Exact where a Gateway divides requests (serve.ingress.gateway); else as near as numbers of "
                          "servers come to it.",
                  .default_yaml = "10",
                  .when = {"serve.canary.from", {}}});
}

}  // namespace

void add_serve_keys(Schema& schema) {
  schema.sections.push_back(
      {"serve", "How it is served, for `systole plan` and `systole render` of workload: serve.", {}, {}});
  schema.sections.push_back({"serve.objective", "The latency that is wanted.", {}, {}});
  schema.sections.push_back({"serve.traffic", "The requests that are expected.", {}, {}});
  schema.sections.push_back({"serve.ingress", "How other networks reach the servers of a cluster.", {}, {}});
  schema.sections.push_back({"serve.canary", "A newer model beside the one that is served on a cluster.", {}, {}});
  add_server_keys(schema.keys);
  add_cluster_keys(schema.keys);
  add_traffic_keys(schema);
  add_length_keys(schema, {"prompt", "Tokens of a prompt.", "512", AT(serve.traffic.prompt.mean),
                           AT(serve.traffic.prompt.distribution), AT(serve.traffic.prompt.sigma)});
  add_length_keys(schema, {"answer", "Tokens of an answer.", "128", AT(serve.traffic.answer.mean),
                           AT(serve.traffic.answer.distribution), AT(serve.traffic.answer.sigma)});
}

bool goes_with_serving(const Key& key) {
  constexpr std::string_view kBeside[] = {"systole",
                                          "name",
                                          "workload",
                                          "resources.memory",
                                          "resources.threads",
                                          "resources.gpus_per_node",
                                          "resources.longest",
                                          "resources.accelerators",
                                          "resources.provisioning",
                                          "resources.reservation",
                                          "resources.price",
                                          "image",
                                          "claims",
                                          "volumes",
                                          "labels",
                                          "kubernetes.namespace",
                                          "kubernetes.selector",
                                          "kubernetes.service_account",
                                          "kubernetes.gcp_service_account",
                                          "slurm.partition",
                                          "slurm.account",
                                          "slurm.qos",
                                          "slurm.constraint",
                                          "slurm.reservation",
                                          "slurm.gpu_type"};
  constexpr std::string_view kSections[] = {"model.", "serve.", "gke.", "ssh."};
  return std::ranges::find(kBeside, key.path) != std::end(kBeside) ||
         std::ranges::any_of(kSections, [&](std::string_view section) { return key.path.starts_with(section); });
}

}  // namespace systole
