// Keys of what stands around a job of Kubernetes: the queue that lets it begin, where its nodes lie, who it is, and who
// reads its metrics.
#include <algorithm>

#include "describe/spec/schema.h"

namespace systole {
namespace {

// A name as Kubernetes takes it, not shown where it is empty.
Codec object_name_codec(Field<std::string> at, const char* expected) {
  Codec codec = text_codec(at);
  codec.type = expected;
  codec.read = [at, expected, read = codec.read](const Node& node, Workload& w) -> Status {
    TRY(read(node, w));
    const std::string& text = at(w);
    const auto is_lower = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    const bool plain = !text.empty() && text.size() <= 63 && is_lower(text.front()) && is_lower(text.back()) &&
                       std::ranges::all_of(text, [&](char c) { return is_lower(c) || c == '-'; });
    if (plain) return {};
    return error(ErrorKind::invalid, "'{}' is no {}", text, expected)
        .at(node.where())
        .hinted("up to 63 lower-case letters, digits and '-', which is not first or last");
  };
  codec.write = [at](Workload& w) { return at(w).empty() ? Node() : Node(at(w)); };
  return codec;
}

// required:LEVEL or preferred:LEVEL; block, subblock, host, or a label of nodes.
Codec topology_codec() {
  Codec codec = text_codec(AT(kubernetes.topology));
  codec.type = "required:LEVEL or preferred:LEVEL";
  codec.read = [read = codec.read](const Node& node, Workload& w) -> Status {
    TRY(read(node, w));
    const std::string& text = w.kubernetes.topology;
    const std::size_t colon = text.find(':');
    const std::string how = text.substr(0, colon);
    const std::string level = colon == text.npos ? "" : text.substr(colon + 1);
    const bool plain = !level.empty() && level.size() <= 317 && std::ranges::all_of(level, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '/' ||
             c == '-' || c == '_';
    });
    if ((how == "required" || how == "preferred") && plain) return {};
    return error(ErrorKind::invalid, "'{}' is no required:LEVEL or preferred:LEVEL", text)
        .at(node.where())
        .hinted("preferred:block; a level is block, subblock, host, or a label of nodes");
  };
  codec.write = [](Workload& w) { return w.kubernetes.topology.empty() ? Node() : Node(w.kubernetes.topology); };
  return codec;
}

// Who it is to Google: NAME@PROJECT.iam.gserviceaccount.com.
Codec google_account_codec() {
  Codec codec = text_codec(AT(kubernetes.gcp_service_account));
  codec.type = "NAME@PROJECT.iam.gserviceaccount.com";
  codec.read = [read = codec.read, type = codec.type](const Node& node, Workload& w) -> Status {
    TRY(read(node, w));
    const std::string& text = w.kubernetes.gcp_service_account;
    constexpr std::string_view kEnd = ".iam.gserviceaccount.com";
    const std::size_t at = text.find('@');
    const auto plain = [](std::string_view part) {
      return !part.empty() && part[0] != '-' && std::ranges::all_of(part, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == ':';
      });
    };
    if (at != text.npos && text.ends_with(kEnd) && text.size() > at + 1 + kEnd.size() && plain(text.substr(0, at)) &&
        plain(text.substr(at + 1)))
      return {};
    return error(ErrorKind::invalid, "'{}' is no {}", text, type)
        .at(node.where())
        .hinted("gcloud iam service-accounts list");
  };
  codec.write = [](Workload& w) {
    const std::string& text = w.kubernetes.gcp_service_account;
    return text.empty() ? Node() : Node(text);
  };
  return codec;
}

// Not shown where it is false.
Codec flag_codec(Field<bool> at) {
  Codec codec = bool_codec(at);
  codec.write = [at](Workload& w) { return at(w) ? Node(true) : Node(); };
  return codec;
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
                  .codec = topology_codec(),
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
                  .codec = google_account_codec(),
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
