// Keys of a Kubernetes job's surroundings: the queue that admits it, the topology of its nodes, its identity, and the
// reader of its metrics.
#include <algorithm>

#include "describe/spec/schema.h"
#include "describe/spec/word_codecs.h"

namespace systole {

bool is_google_account(std::string_view text) {
  constexpr std::string_view kEnd = ".iam.gserviceaccount.com";
  const std::size_t at = text.find('@');
  const auto plain = [](std::string_view part) {
    return !part.empty() && part[0] != '-' && std::ranges::all_of(part, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == ':';
    });
  };
  return at != text.npos && text.ends_with(kEnd) && text.size() > at + 1 + kEnd.size() && plain(text.substr(0, at)) &&
         plain(text.substr(at + 1));
}

namespace {

// A name in Kubernetes' grammar.
Codec object_name_codec(Field<std::string> at, const char* expected) {
  const auto is_valid = [](const std::string& text) {
    const auto is_lower = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    return !text.empty() && text.size() <= 63 && is_lower(text.front()) && is_lower(text.back()) &&
           std::ranges::all_of(text, [&](char c) { return is_lower(c) || c == '-'; });
  };
  return valid_text_codec(at, expected, is_valid,
                          "up to 63 lower-case letters, digits and '-', which is not first or last");
}

// With LEVEL block, subblock, host, or a node label.
bool is_topology(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string how = text.substr(0, colon);
  const std::string level = colon == text.npos ? "" : text.substr(colon + 1);
  return (how == "required" || how == "preferred") && !level.empty() && level.size() <= 317 &&
         std::ranges::all_of(level, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '/' ||
                  c == '-' || c == '_';
         });
}

}  // namespace

void add_queue_keys(std::vector<Key>& keys) {
  const auto name = [&](const char* path, Field<std::string> at, const char* expected, const char* doc,
                        const char* more = "") {
    keys.push_back(
        {.path = path, .codec = object_name_codec(at, expected), .doc = doc, .more = more, .optional = true});
  };
  name("kubernetes.queue", AT(kubernetes.queue), "name of a queue",
       "Kueue's local queue that lets it begin, all of it at once.");
  name("kubernetes.priority", AT(kubernetes.priority), "name of a priority",
       "Kueue's priority class of it: who waits for whom, and who is preempted.");
  keys.push_back({.path = "kubernetes.topology",
                  .codec = valid_text_codec(AT(kubernetes.topology), "required:LEVEL or preferred:LEVEL", is_topology,
                                            "preferred:block; a level is block, subblock, host, or a label of nodes"),
                  .doc = "How near to each other its nodes are: preferred:block, required:subblock.",
                  .more = "Kueue places it so; block, subblock and host are Google's, any other level is a label of "
                          "nodes. required: it waits until there is room; preferred: as near as can be.",
                  .optional = true,
                  .when = {"kubernetes.queue", {}}});
  keys.push_back({.path = "kubernetes.queue_nodes",
                  .codec = optional_count_codec(AT(kubernetes.queue_nodes), 1, 100'000),
                  .doc = "Also writes queues.yml, with which a cluster's operator makes the queue: so many nodes for "
                         "it.",
                  .more = "Once a cluster, and not with the job: Topology, ResourceFlavor, ClusterQueue, LocalQueue, "
                          "and what else its keys need.",
                  .optional = true,
                  .when = {"kubernetes.queue", {}}});
  keys.push_back({.path = "kubernetes.priority_value",
                  .codec = optional_count_codec(AT(kubernetes.priority_value), 0, 1'000'000'000),
                  .doc = "What the priority class is worth, for queues.yml; more goes first.",
                  .optional = true,
                  .when = {"kubernetes.priority", {}}});
  name("kubernetes.cohort", AT(kubernetes.cohort), "name of a cohort",
       "Queues that lend each other what they do not use, for queues.yml.");
  keys.push_back({.path = "kubernetes.queued",
                  .codec = flag_codec(AT(kubernetes.queued)),
                  .doc = "Its nodes are asked for all at once, by a ProvisioningRequest, and it starts when they are "
                         "there.",
                  .more = "Google's Dynamic Workload Scheduler: needs resources.longest, up to 7 days, for which the "
                          "nodes are given.",
                  .optional = true});
  keys.push_back({.path = "kubernetes.gcp_service_account",
                  .codec = valid_text_codec(AT(kubernetes.gcp_service_account), "NAME@PROJECT.iam.gserviceaccount.com",
                                            is_google_account, "gcloud iam service-accounts list"),
                  .doc = "As whom it speaks to Google Cloud (Workload Identity): buckets, secrets.",
                  .optional = true});
  keys.push_back(
      {.path = "kubernetes.metrics_port",
       .codec = optional_count_codec(AT(kubernetes.metrics_port), 1, 65535),
       .doc = "Port at which Prometheus metrics are served, and Google collects them: a model's by rank 0, those of a "
              "program of your own (command) by itself.",
       .optional = true});
}

}  // namespace systole
