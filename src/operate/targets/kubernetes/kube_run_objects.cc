#include "operate/targets/kubernetes/kube_run_objects.h"

#include <algorithm>

#include "ground/net/url.h"
#include "operate/targets/kubernetes/kube_objects.h"

namespace systole {
namespace {

constexpr const char* kQueue = "kueue.x-k8s.io/queue-name";

bool is_owned(const Node& object) {
  const Node* owners = at(object, {"metadata", "ownerReferences"});
  return owners != nullptr && !owners->items().empty();
}
bool is_owned_by(const Node& object, const std::string& uid) {
  const Node* owners = at(object, {"metadata", "ownerReferences"});
  return owners != nullptr &&
         std::ranges::any_of(owners->items(), [&](const Node& owner) { return text_at(owner, {"uid"}) == uid; });
}

// The newest warning about an object that should have pods and has none.
Result<std::string> event_of(KubeApi& api, const std::string& space, const Node& maker) {
  const std::string uid = text_at(maker, {"metadata", "uid"});
  const KubeApi::Listed events = TRY(api.list(fmt::format("/api/v1/namespaces/{}/events", url_encoded(space)), "",
                                              "fieldSelector=" + url_encoded("involvedObject.uid=" + uid)));
  std::string newest, text;
  for (const Node& event : events.items) {
    const std::string when = text_at(event, {"lastTimestamp"});
    if (text_at(event, {"type"}) != "Warning" || when < newest) continue;
    newest = when;
    text = text_at(event, {"reason"}) + ": " + text_at(event, {"message"});
  }
  return text;
}

}  // namespace

std::string labels_of_run(const std::string& run) {
  return run.empty() ? std::string(kManagedBy) : fmt::format("{},{}={}", kManagedBy, kRunLabel, run);
}

Result<std::vector<KubeRunObjects>> run_objects_of(KubeApi& api, const std::string& name_space,
                                                   const std::string& labels) {
  std::vector<KubeRunObjects> all_objects;
  bool queued = false;
  for (const PodMaker& kind : pod_makers()) {
    if (!TRY(api.serves(kind.api_version))) continue;
    const Result<std::string> path = api.path_of(kind.api_version, kind.kind, name_space);
    if (!path.ok() && path.error().kind == ErrorKind::not_found) continue;
    if (!path.ok()) return path.error();
    for (Node& maker : TRY(api.list(*path, labels)).items) {
      if (is_owned(maker) || label_of(maker, kSubmissionLabel).empty()) continue;
      queued = queued || !label_of(maker, kQueue).empty();
      all_objects.push_back({std::move(maker), {}, {}, {}});
    }
  }
  if (all_objects.empty()) return all_objects;
  for (Node& pod : TRY(api.list(fmt::format("/api/v1/namespaces/{}/pods", url_encoded(name_space)), labels)).items)
    for (KubeRunObjects& objects : all_objects)
      if (label_of(pod, kSubmissionLabel) == label_of(objects.maker, kSubmissionLabel)) {
        objects.pods.push_back(std::move(pod));
        break;
      }
  for (const char* kueue : {"kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1"}) {
    if (!queued || !TRY(api.serves(kueue))) continue;
    for (Node& workload : TRY(api.list(TRY(api.path_of(kueue, "Workload", name_space)))).items)
      for (KubeRunObjects& objects : all_objects)
        if (is_owned_by(workload, text_at(objects.maker, {"metadata", "uid"}))) objects.workload = workload;
    break;
  }
  for (KubeRunObjects& objects : all_objects)
    if (objects.pods.empty() && status_of(objects).state == RunState::queued && !objects.workload)
      objects.event = TRY(event_of(api, name_space, objects.maker));
  return all_objects;
}

}  // namespace systole
