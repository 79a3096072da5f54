// A node's devices, selection of nodes that have them, and their provisioning terms. Google's machines are selected by
// GKE's labels, others by the workload's own.
#include "operate/render/names.h"
#include "operate/render/quote.h"
#include "operate/targets/kubernetes/pod.h"

namespace systole {
namespace {

constexpr Seconds kSpotNotice{15};  // GKE's limit for pods on spot nodes, whatever they request

std::string gke_label(const ClusterJob& job) {
  if (job.slice && !job.slice->gke_label.empty()) return job.slice->gke_label;
  return job.machine == nullptr ? "" : job.machine->gke_label;
}

void add_users_selector(const KubernetesJob& k, PodParts& parts) {
  for (const auto& [name, value] : k.workload().kubernetes.selector) {
    if (!is_label_name(name) || !is_label_value(value))
      parts.wrong.push_back(key_error(ErrorKind::invalid, "kubernetes.selector", "'{}: {}' is no label",
                                      comment_text(name), comment_text(value))
                                .hinted("[PREFIX/]NAME: VALUE, up to 63 letters, digits, '-', '_' and '.' each"));
    parts.selector.set(name, value);
  }
}

void select(PodParts& parts, const std::string& name, const std::string& value, const std::string& because) {
  if (const Node* said = parts.selector.find(name); said != nullptr && said->text() != value)
    parts.wrong.push_back(key_error(ErrorKind::invalid, "kubernetes.selector", "'{}: {}', and {} is {}", name,
                                    said->text(), because, value)
                              .hinted("leave it out"));
  parts.selector.set(name, value);
}

void add_place(const KubernetesJob& k, const std::string& label, PodParts& parts) {
  const ClusterJob& job = k.job;
  const auto is = [&](const char* name, const std::string& value) {
    select(parts, fmt::format("cloud.google.com/{}", name), value, job.on);
  };
  if (job.slice) {
    is("gke-tpu-accelerator", label);
    is("gke-tpu-topology", job.slice->shape_text());
  } else {
    is("gke-accelerator", label);
  }
  is("gke-accelerator-count", std::to_string(job.devices_per_node()));
  if (job.machine->arch == "arm64") parts.tolerate("kubernetes.io/arch", "arm64");
}

void add_terms(const KubernetesJob& k, bool gke, PodParts& parts) {
  const ClusterJob& job = k.job;
  if (!job.terms) return;
  if (!gke) {
    parts.wrong.push_back(key_error(ErrorKind::invalid, "resources.provisioning",
                                    "terms belong to machines of the catalog, and none are named")
                              .hinted("resources.accelerators: h100:16; nodes of your own: kubernetes.selector"));
    return;
  }
  const auto ask = [&](const char* name) {
    const std::string label = fmt::format("cloud.google.com/{}", name);
    select(parts, label, "true", "resources.provisioning");
    parts.tolerate(label, "true");
  };
  switch (*job.terms) {
    case Provisioning::spot:
      ask("gke-spot");
      if (Seconds(static_cast<double>(grace_of(job))) > kSpotNotice)
        parts.wrong.push_back(key_error(ErrorKind::invalid, "ranks.notice",
                                        "{:.0f} s; a spot node of GKE gives its pods 15 s in all", job.notice.count())
                                  .hinted("ranks: { notice: 10s }"));
      break;
    case Provisioning::flex_start: ask("gke-flex-start"); break;
    case Provisioning::reservation:
      select(parts, "cloud.google.com/reservation-name", job.reservation, "resources.reservation");
      select(parts, "cloud.google.com/reservation-affinity", "specific", "resources.reservation");
      break;
    default: break;
  }
}

}  // namespace

void add_devices(const KubernetesJob& k, PodParts& parts) {
  const ClusterJob& job = k.job;
  add_users_selector(k, parts);
  const std::string label = gke_label(job);
  if (!job.device().empty()) {
    const std::string count = std::to_string(job.devices_per_pod());
    for (Node* of : {&parts.requests, &parts.limits}) of->set(job.device(), count);
    parts.tolerate(job.device());
  }
  if (job.slice && label.empty())
    parts.wrong.push_back(error(ErrorKind::unsupported, "{}: GKE has no nodes of {}", job.on, job.slice->accelerator)
                              .hinted("systole catalog slices lists what there is"));
  if (!label.empty()) add_place(k, label, parts);
  const bool pooled = k.ask.target->provisions.can;
  if (pooled && job.device().empty()) select(parts, "cloud.google.com/gke-nodepool", job.run, "its pool");
  add_terms(k, pooled || !label.empty(), parts);
}

}  // namespace systole
