#include "operate/targets/kubernetes/kubernetes.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "describe/spec/workload.h"
#include "ground/base/files.h"
#include "ground/base/text_file.h"
#include "ground/net/url.h"
#include "ground/process/spawn.h"
#include "operate/cluster/record.h"
#include "operate/targets/kubernetes/kube_bring.h"
#include "operate/targets/kubernetes/kube_objects.h"
#include "operate/targets/kubernetes/kube_output.h"
#include "operate/targets/kubernetes/kube_run_objects.h"
#include "operate/targets/kubernetes/kube_send.h"
#include "operate/targets/kubernetes/kube_watch.h"

namespace systole {
namespace {

constexpr const char* kInCluster = "in-cluster";

class Kubernetes : public ClusterClient {
 public:
  Kubernetes(std::unique_ptr<Clock> clock, std::unique_ptr<KubeApi> api, std::string name_space)
      : clock_(std::move(clock)), api_(std::move(api)), space_(std::move(name_space)) {}

  const char* name() const override { return "kubernetes"; }
  ClusterLocation where() const override { return {{"context", api_->access().context}, {"namespace", space_}}; }
  bool shares_folders() const override { return false; }
  bool brings_program() const override { return false; }  // it is in the image
  void set_defaults(Workload& workload) const override {
    if (workload.kubernetes.name_space.empty()) workload.kubernetes.name_space = space_;
  }
  Result<std::vector<std::string>> warnings() override {
    std::vector<std::string> all;
    if (std::string version = version_warning(TRY(api_->version())); !version.empty())
      all.push_back(std::move(version));
    return all;
  }
  std::optional<Error> doubt() const override {
    const KubeAccess& access = api_->access();
    if (access.trust.checks_certificate) return {};
    return error(ErrorKind::invalid,
                 "INSECURE: the kubeconfig of context '{}' says insecure-skip-tls-verify: whoever answers at {} is "
                 "believed, and gets the credentials of user '{}'",
                 access.context, access.server, access.user.name)
        .hinted("certificate-authority or certificate-authority-data in place of insecure-skip-tls-verify");
  }

  Result<std::string> send(const Record& record) override {
    TRY(restore_files(record));
    return send_objects(*api_, record);
  }

  Result<std::vector<JobStatus>> query(std::span<const Record> records) override {
    std::set<std::string> spaces;
    for (const Record& record : records) spaces.insert(space_of(record));
    std::vector<JobStatus> all;
    for (const std::string& space : spaces)
      for (const KubeRunObjects& objects :
           TRY(run_objects_of(*api_, space, labels_of_run(records.size() == 1 ? records[0].run : std::string())))) {
        JobStatus status = status_of(objects);
        status.workload = text_at(objects.maker, {"metadata", "annotations", "systole/workload-sha256"});
        all.push_back(std::move(status));
      }
    return all;
  }

  Result<bool> record_end(const Record& record) override {
    if (stops_.count(record.submission) == 0) return false;
    bool noted = false;
    for (const KubeRunObjects& objects : TRY(run_objects_of(*api_, space_of(record), labels_of_run(record.run))))
      if (label_of(objects.maker, kSubmissionLabel) == record.submission) noted = TRY(note_end(objects)) || noted;
    return noted;
  }

  Result<std::unique_ptr<Output>> output(const Record& record, bool all) override {
    return pods_output(api_->another(Seconds(10.0)), space_of(record), labels_of(record), !all);
  }

  // Suspending a run terminates its pods, gracefully: its ranks save.
  Status stop(const Record& record, bool now) override {
    for (const KubeRunObjects& objects : TRY(run_objects_of(*api_, space_of(record), labels_of_run(record.run)))) {
      if (label_of(objects.maker, kSubmissionLabel) != record.submission || is_over(status_of(objects).state)) continue;
      const KubeApi::Listed pods = TRY(api_->list(pods_path(record), labels_of(record)));
      if (stops_.count(record.submission) == 0) stops_[record.submission] = {pods.version, names_of(pods.items)};
      TRY(suspend(objects, now));
      if (!now) continue;
      for (const Node& pod : pods.items) TRY(api_->remove(pods_path(record) + "/" + name_of(pod), "Background", 0));
    }
    return {};
  }

  Result<std::vector<std::string>> inside(const Record& record, const JobStatus&, const std::string& node,
                                          std::span<const std::string> command) override {
    if (!find_program("kubectl").ok())
      return error(ErrorKind::not_found, "there is no 'kubectl' here, which carries a terminal into a pod")
          .hinted("gcloud components install kubectl; or a package kubernetes-client");
    const KubeApi::Listed pods = TRY(api_->list(pods_path(record), labels_of(record)));
    std::vector<std::string> there;
    const Node* chosen = nullptr;
    for (const Node& pod : pods.items) {
      if (text_at(pod, {"status", "phase"}) != "Running") continue;
      const std::string on = text_at(pod, {"spec", "nodeName"});
      there.push_back(on);
      if (node.empty() ? chosen == nullptr || is_first(pod)
                       : node == on || node == name_of(pod) || node == short_name(pod))
        chosen = &pod;
    }
    if (chosen == nullptr)
      return error(ErrorKind::not_found, "the run '{}' has no pod that runs{}", record.run,
                   node.empty() ? "" : fmt::format(" on '{}'", node))
          .hinted(there.empty() ? "systole runs tells when it has" : fmt::format("it has: {}", fmt::join(there, ", ")));
    std::vector<std::string> words = {"kubectl"};
    if (api_->access().context != kInCluster) words.push_back("--context=" + api_->access().context);
    words.insert(words.end(), {"--namespace=" + space_of(record), "exec", command.empty() ? "-it" : "-i",
                               name_of(*chosen), "--container=" + container_of(*chosen), "--"});
    if (command.empty()) words.push_back("/bin/sh");
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }

  Status bring(const Record& record, const std::string& folder, const std::string& into) override {
    for (const Node& object : TRY(objects_of(record)))
      for (const PodGang& gang : gangs_of(object)) {
        Node metadata = *gang.pod.find("metadata"), pod = gang.pod;
        metadata.set("namespace", space_of(record));
        pod.set("metadata", metadata);
        const std::string whole = folder + "/" + record.run;
        return bring_folder(*api_, record, pod, folder.ends_with("/" + record.run) ? folder : whole, into);
      }
    return error(ErrorKind::not_found, "nothing tells which claim has the results of '{}'", record.run);
  }

  // Deletes everything with its label except objects that hold data: deleting a volume or class would delete its
  // claim's data, or hang until the claim is deleted.
  Status purge(const Record& record) override {
    std::vector<std::pair<std::string, std::string>> kinds;
    const auto add = [&](const std::string& version, const std::string& kind) {
      if (!holds_data(kind) && kind != "Namespace" && std::ranges::find(kinds, std::pair(version, kind)) == kinds.end())
        kinds.emplace_back(version, kind);
    };
    for (const PodMaker& maker : pod_makers())
      if (TRY(api_->serves(maker.api_version))) add(maker.api_version, maker.kind);
    for (const char* kind : {"Pod", "Service", "ConfigMap", "Secret"}) add("v1", kind);
    add("networking.k8s.io/v1", "NetworkPolicy");
    if (const Result<std::vector<Node>> objects = objects_of(record); objects.ok())
      for (const Node& object : *objects) add(text_at(object, {"apiVersion"}), text_at(object, {"kind"}));
    bool left = true;
    for (int turn = 0; left && turn < 300; ++turn) {
      left = false;
      for (const auto& [version, kind] : kinds) {
        const Result<std::string> path = api_->path_of(version, kind, space_of(record));
        if (!path.ok() && path.error().kind == ErrorKind::not_found) continue;
        if (!path.ok()) return path.error();
        for (const Node& object : TRY(api_->list(*path, std::string(kRunLabel) + "=" + record.run)).items) {
          left = true;
          if (at(object, {"metadata", "deletionTimestamp"}) == nullptr)
            TRY(api_->remove(*path + "/" + name_of(object), "Foreground"));
        }
      }
      if (left) api_->clock().sleep(Seconds(0.2));
    }
    if (!left) return {};
    return error(ErrorKind::busy, "something of '{}' is still going, after a minute", record.run)
        .hinted(fmt::format("kubectl get all -n {} -l {}={}", space_of(record), kRunLabel, record.run));
  }

  Result<std::vector<Record>> recall(const std::string& run) override {
    std::vector<Record> records;
    const std::string path = TRY(api_->path_of("v1", "ConfigMap", space_));
    for (const Node& note : TRY(api_->list(path, labels_of_run(run))).items) {
      if (!name_of(note).ends_with(kSubmissionNote)) continue;
      Result<Record> record = record_of_note(note);
      if (!record.ok()) continue;
      record->where = where();
      // The note is written before there is an id.
      for (const KubeRunObjects& objects : TRY(run_objects_of(*api_, space_, labels_of_run(record->run))))
        if (label_of(objects.maker, kSubmissionLabel) == record->submission) record->id = status_of(objects).id;
      records.push_back(std::move(*record));
    }
    return records;
  }

 private:
  struct Stopping {
    std::string version;  // of the list of its pods, before the stop
    std::set<std::string> pods;
  };

  std::string space_of(const Record& record) const {
    const auto named = record.where.find("namespace");
    return named == record.where.end() || named->second.empty() ? space_ : named->second;
  }
  std::string pods_path(const Record& record) const {
    return fmt::format("/api/v1/namespaces/{}/pods", url_encoded(space_of(record)));
  }
  static std::string labels_of(const Record& record) {
    return fmt::format("{}={},{}={}", kRunLabel, record.run, kSubmissionLabel, record.submission);
  }
  static std::set<std::string> names_of(const std::vector<Node>& pods) {
    std::set<std::string> names;
    for (const Node& pod : pods)
      if (!text_at(pod, {"spec", "nodeName"}).empty()) names.insert(name_of(pod));
    return names;
  }

  // An adopted record has its files in the note.
  Status restore_files(const Record& record) {
    std::error_code failed;
    const std::string folder = record.place + "/files";
    if (std::filesystem::exists(folder, failed)) return {};
    std::filesystem::create_directories(folder, failed);
    if (failed) return error(ErrorKind::io, "cannot make '{}': {}", folder, failed.message());
    const Node note = TRY(note_of(record));
    if (const Node* data = note.find("data"))
      for (const Node::Entry& entry : data->entries())
        if (entry.key.ends_with(".yaml") && entry.key.find('/') == entry.key.npos)
          TRY(write_text_file(folder + "/" + entry.key, entry.value.text()));
    return {};
  }
  Result<Node> note_of(const Record& record) {
    return api_->get(TRY(api_->path_of("v1", "ConfigMap", space_of(record), record.run + kSubmissionNote)));
  }

  // As rendered: from here, or from the note on the cluster.
  Result<std::vector<Node>> objects_of(const Record& record) {
    if (path_exists(record.place + "/files")) return read_objects(record);
    const Node note = TRY(note_of(record));
    std::vector<Node> objects;
    if (const Node* data = note.find("data"))
      for (const Node::Entry& entry : data->entries())
        if (entry.key.ends_with(".yaml"))
          for (Node& object : TRY(read_documents(entry.value.text(), entry.key))) objects.push_back(std::move(object));
    return objects;
  }

  Status suspend(const KubeRunObjects& objects, bool now) {
    const PodMaker* kind = pod_maker(objects.maker);
    Node change =
        Node::map({{"metadata", Node::map({{"annotations", Node::map({{kStopNote, now ? "now" : "save"}})}})}});
    if (objects.workload) {  // otherwise Kueue would resume it
      TRY(api_->patch(TRY(api_->path_of(*objects.workload)), Node::map({{"spec", Node::map({{"active", false}})}})));
    } else {
      Node told = Node(true);
      for (auto key = kind->suspend.rbegin(); key != kind->suspend.rend(); ++key)
        told = Node::map({{std::string(*key), told}});
      change.set("spec", *told.find("spec"));
    }
    return TRY(api_->patch(TRY(api_->path_of(objects.maker)), change)), Status();
  }

  // The exit codes of deleted pods come from a watch that starts before the stop; they are written to the run's
  // annotation. Returns whether there were any.
  Result<bool> note_end(const KubeRunObjects& objects) {
    const auto stopping = stops_.find(label_of(objects.maker, kSubmissionLabel));
    if (stopping == stops_.end() || status_of(objects).state != RunState::stopped) return false;
    std::map<std::string, std::int64_t> codes;
    std::int64_t last = 0;
    std::set<std::string> waited = stopping->second.pods;
    const auto take = [&](const Node& pod) {
      const std::optional<std::int64_t> code = exit_code_of(pod);
      if (waited.count(name_of(pod)) == 0 || !code) return;
      codes[name_of(pod)] = *code;
      waited.erase(name_of(pod));
      last = std::max(last, seconds_of_end(pod));
    };
    for (const Node& pod : objects.pods) take(pod);
    const WatchRequest ask{.path = fmt::format("/api/v1/namespaces/{}/pods",
                                               url_encoded(text_at(objects.maker, {"metadata", "namespace"}))),
                           .labels = fmt::format("{}={}", kSubmissionLabel, stopping->first),
                           .from = stopping->second.version,
                           .longest = Seconds(3.0)};
    const auto each = [&](const KubeEvent& event) {
      if (event.kind != KubeEvent::Kind::listed) take(event.object);
      if (event.kind == KubeEvent::Kind::removed) waited.erase(name_of(event.object));
      return !waited.empty();
    };
    if (!waited.empty()) TRY(watch(*api_, ask, each));
    stops_.erase(stopping);
    std::vector<std::int64_t> all;
    for (const auto& [pod, code] : codes) all.push_back(code);
    const std::optional<std::int64_t> code = exit_code_of(all);
    if (!code) return false;
    const Node note = Node::map(
        {{"metadata", Node::map({{"annotations", Node::map({{kEndedNote, fmt::format("{} {}", *code, last)}})}})}});
    TRY(api_->patch(TRY(api_->path_of(objects.maker)), note));
    return true;
  }

  std::unique_ptr<Clock> clock_;  // null: the owner of `api_` has it
  std::unique_ptr<KubeApi> api_;
  std::string space_;
  std::map<std::string, Stopping> stops_;  // by submission
};

}  // namespace

Result<std::unique_ptr<ClusterClient>> open_kubernetes(const ClusterClient::ClusterLocation& where) {
  const auto named = [&](const char* key) {
    const auto found = where.find(key);
    return found == where.end() ? std::string() : found->second;
  };
  const std::string context = named("context") == kInCluster ? "" : named("context");
  KubeAccess access = TRY(kube_access(kubeconfig_of_environment(context)));
  const std::string space = named("namespace").empty() ? access.name_space : named("namespace");
  std::unique_ptr<Clock> clock = real_clock();
  auto api = std::make_unique<KubeApi>(std::make_shared<KubeCredentials>(std::move(access), *clock), *clock);
  return std::unique_ptr<ClusterClient>(std::make_unique<Kubernetes>(std::move(clock), std::move(api), space));
}

std::unique_ptr<ClusterClient> kubernetes_by(std::unique_ptr<KubeApi> api, std::string name_space) {
  return std::make_unique<Kubernetes>(nullptr, std::move(api), std::move(name_space));
}

}  // namespace systole
