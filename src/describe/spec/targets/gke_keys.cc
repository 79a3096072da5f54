// Keys of target gke: the cluster's location, and properties that the job does not determine.
#include "describe/spec/targets/gke_keys.h"

#include <algorithm>

#include "describe/spec/schema.h"
#include "describe/spec/word_codecs.h"

namespace systole {
namespace {

// Names of Google Cloud; `render` checks the grammar of each.
Codec cloud_name_codec(Field<std::string> at, const char* expected) {
  const auto is_valid = [](const std::string& text) {
    return !text.empty() && text.size() <= 63 && text[0] != '-' && std::ranges::all_of(text, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
  };
  return valid_text_codec(at, expected, is_valid, "up to 63 lower-case letters, digits and '-', which is not first");
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
