// Keys of target gke: where its cluster is, and what of it the job does not say by itself.
#include <algorithm>

#include "describe/spec/schema.h"

namespace systole {
namespace {

// Names of Google Cloud, not shown where they are empty; `render` holds each to its own grammar.
Codec cloud_name_codec(Field<std::string> at, const char* expected) {
  Codec codec = text_codec(at);
  codec.type = expected;
  codec.read = [at, expected, read = codec.read](const Node& node, Workload& w) -> Status {
    TRY(read(node, w));
    const std::string& text = at(w);
    const bool plain = !text.empty() && text.size() <= 63 && text[0] != '-' && std::ranges::all_of(text, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
    if (plain) return {};
    return error(ErrorKind::invalid, "'{}' is no {}", text, expected)
        .at(node.where())
        .hinted("up to 63 lower-case letters, digits and '-', which is not first");
  };
  codec.write = [at](Workload& w) { return at(w).empty() ? Node() : Node(at(w)); };
  return codec;
}

// Not shown where it is what it is without being said.
template <typename Enum>
Codec usual_choice_codec(Field<Enum> at, std::vector<std::pair<std::string, Enum>> values) {
  const Enum usual = values.front().second;
  Codec codec = choice_codec(at, std::move(values));
  codec.write = [at, usual, write = codec.write](Workload& w) { return at(w) == usual ? Node() : write(w); };
  return codec;
}

}  // namespace

void add_gke_keys(Schema& schema) {
  schema.sections.push_back({"gke", "A cluster of Google Kubernetes Engine, made where it is not there yet.", {}, {}});
  const auto name = [&](const char* path, Field<std::string> at, const char* expected, const char* doc) {
    schema.keys.push_back({.path = path, .codec = cloud_name_codec(at, expected), .doc = doc, .optional = true});
  };
  name("gke.project", AT(gke.project), "id of a project", "Project that it is in and that pays for it.");
  name("gke.cluster", AT(gke.cluster), "name of a cluster", "Cluster, by its name.");
  name("gke.location", AT(gke.location), "zone or region", "Zone, or region, of its control plane: us-central1-a.");
  name("gke.zone", AT(gke.zone), "zone", "Zone of its nodes, where gke.location is a region.");
  name("gke.network", AT(gke.network), "name of a network",
       "Network of its own that the cluster is in. Without it, one called as the cluster.");
  name("gke.machine", AT(gke.machine), "machine type",
       "Machine of each node, where accelerators do not say it. Without it, the least that a node fits on.");
  using Driver = GkeSpec::Driver;
  schema.keys.push_back(
      {.path = "gke.driver",
       .codec = usual_choice_codec<Driver>(
           AT(gke.driver), {{"latest", Driver::latest}, {"default", Driver::standard}, {"manual", Driver::manual}}),
       .doc = "Driver of its GPUs: what GKE has newest, what it has usually, or a DaemonSet's.",
       .optional = true});
  using Image = GkeSpec::Image;
  schema.keys.push_back(
      {.path = "gke.image",
       .codec = usual_choice_codec<Image>(AT(gke.image), {{"cos", Image::cos}, {"ubuntu", Image::ubuntu}}),
       .doc = "System of its nodes: Container-Optimized OS, or Ubuntu.",
       .optional = true});
}

}  // namespace systole
