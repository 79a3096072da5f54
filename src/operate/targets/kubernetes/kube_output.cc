#include "operate/targets/kubernetes/kube_output.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include "ground/net/url.h"
#include "operate/targets/kubernetes/kube_log.h"

namespace systole {
namespace {

constexpr Seconds kPatience{60.0};  // longer than a server's restart

bool has_begun(const Node& pod) {
  const std::string phase = text_at(pod, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed") return true;
  const Node* all = at(pod, {"status", "containerStatuses"});
  return all != nullptr && std::ranges::any_of(all->items(), [](const Node& one) {
           return at(one, {"state", "waiting"}) == nullptr || at(one, {"lastState", "terminated"}) != nullptr;
         });
}
bool is_over(const Node& pod) {
  const std::string phase = text_at(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

class PodsOutput : public Output {
 public:
  PodsOutput(std::unique_ptr<KubeApi> api, std::string name_space, std::string labels, bool first_alone)
      : api_(std::move(api)), space_(std::move(name_space)), labels_(std::move(labels)), first_alone_(first_alone) {}
  ~PodsOutput() override {
    over_ = true;
    for (Reader& reader : readers_) reader.thread.join();
  }

  Seconds pace() const override { return Seconds(0.5); }

  Result<std::vector<OutputPiece>> more() override {
    const KubeApi::Listed pods =
        TRY(api_->list(fmt::format("/api/v1/namespaces/{}/pods", url_encoded(space_)), labels_));
    std::vector<OutputPiece> pieces;
    for (const Node& pod : pods.items) {
      if ((first_alone_ && !is_first(pod)) || !has_begun(pod)) continue;
      const std::string uid = text_at(pod, {"metadata", "uid"});
      if (std::ranges::find(readers_, uid, &Reader::uid) == readers_.end()) TRY(begin(pod, pieces));
    }
    for (Reader& reader : readers_) {
      const auto still = std::ranges::find_if(pods.items, [&](const Node& pod) {
        return text_at(pod, {"metadata", "uid"}) == reader.uid;
      });
      if (still == pods.items.end() || is_over(*still)) settle(reader);
    }
    const std::lock_guard lock(mutex_);
    std::ranges::move(pieces_, std::back_inserter(pieces));
    pieces_.clear();
    if (failed_ && pieces.empty()) {
      const Error why = *failed_;
      failed_.reset();
      return why;
    }
    return pieces;
  }

 private:
  struct Reader {
    std::string uid, source;
    LogPlace place;
    LogLines lines = {};
    bool done = false;
    std::thread thread = {};
  };

  // Existing output is read here, so that one call returns it all; later output comes from its thread.
  Status begin(const Node& pod, std::vector<OutputPiece>& pieces) {
    Reader reader{text_at(pod, {"metadata", "uid"}), short_name(pod), {}, {}, false, {}};
    reader.place = {space_, name_of(pod), container_of(pod)};
    const std::string text = TRY(read_log(*api_, reader.place, reader.lines));
    if (!text.empty()) pieces.push_back({reader.source, text});
    readers_.push_back(std::move(reader));
    Reader& kept = readers_.back();
    kept.thread = std::thread([this, &kept] { follow(kept); });
    return {};
  }

  void follow(Reader& reader) {
    const std::unique_ptr<KubeApi> api = api_->another(kPatience);
    Status ended;
    try {
      ended = follow_log(
          *api, reader.place, reader.lines,
          [&](const std::string& text) {
            const std::lock_guard lock(mutex_);
            pieces_.push_back({reader.source, text});
            return !over_;
          },
          [this] { return over_.load(); });
    } catch (const Failure& failure) { ended = failure.error(); }
    const std::lock_guard lock(mutex_);
    reader.done = true;
    if (!ended.ok() && !over_) failed_ = ended.error();
    changed_.notify_all();
  }

  // After its container has ended, the last output is on its way; if the server was away it may take a while.
  void settle(Reader& reader) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return reader.done; });
  }

  const std::unique_ptr<KubeApi> api_;
  const std::string space_, labels_;
  const bool first_alone_;
  std::atomic<bool> over_ = false;
  std::list<Reader> readers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<OutputPiece> pieces_;
  std::optional<Error> failed_;
};

}  // namespace

bool is_first(const Node& pod) {
  for (const char* key : {"batch.kubernetes.io/job-completion-index", "jobset.sigs.k8s.io/job-index",
                          "training.kubeflow.org/replica-index"})
    if (const std::string index = label_of(pod, key); !index.empty() && index != "0") return false;
  return true;
}

std::string short_name(const Node& pod) {
  const std::string name = name_of(pod);
  if (label_of(pod, "batch.kubernetes.io/job-completion-index").empty()) return name;
  return name.substr(0, name.rfind('-'));
}

std::unique_ptr<Output> pods_output(std::unique_ptr<KubeApi> api, std::string name_space, std::string labels,
                                    bool first_alone) {
  return std::make_unique<PodsOutput>(std::move(api), std::move(name_space), std::move(labels), first_alone);
}

}  // namespace systole
