#include "operate/targets/kubernetes/kube_watch.h"
#include "ground/net/url.h"

#include <algorithm>

namespace systole {
namespace {

class Watch {
 public:
  Watch(KubeApi& api, const WatchRequest& ask, const std::function<bool(const KubeEvent&)>& each)
      : api_(api), ask_(ask), each_(each), version_(ask.from), begun_(api.clock().now()) {}

  Status run() {
    constexpr Seconds kPause{0.2};
    while (!over()) {
      if (version_.empty()) TRY(list());
      if (over()) return {};
      const Result<KubeReply> reply = once();
      if (over()) return {};
      if (reply.ok() && reply->status == 410) version_.clear();
      if (reply.ok() && (reply->status / 100 == 2 || reply->status == 410)) {
        if (!came_) api_.clock().sleep(kPause);  // avoids a busy loop if the server ends watches at once
        continue;
      }
      // Away, busy, or refusing: a call with patience waits, or reports it.
      if (reply.ok() && reply->status / 100 == 4 && reply->status != 429) return refusal_of(*reply, ask_.path);
      if (reply.ok() == false && reply.error().kind != ErrorKind::io) return reply.error();
      api_.clock().sleep(kPause);
      TRY(api_.get("/version"));
    }
    return {};
  }

 private:
  bool over() const {
    return ended_ || (ask_.cancelled && ask_.cancelled()) ||
           (ask_.longest.count() > 0 && api_.clock().now() - begun_ >= ask_.longest);
  }
  Status list() {
    const KubeApi::Listed listed = TRY(api_.list(ask_.path, ask_.labels));
    tell({KubeEvent::Kind::listed, {}});
    for (const Node& item : listed.items) tell({KubeEvent::Kind::present, item});
    version_ = listed.version;
    return {};
  }
  void tell(const KubeEvent& event) { ended_ = ended_ || !each_(event); }

  Result<KubeReply> once() {
    std::string path =
        fmt::format("{}?watch=true&allowWatchBookmarks=true&resourceVersion={}", ask_.path, url_encoded(version_));
    if (!ask_.labels.empty()) path += "&labelSelector=" + url_encoded(ask_.labels);
    if (ask_.longest.count() > 0)
      path +=
          fmt::format("&timeoutSeconds={}", std::max<std::int64_t>(1, static_cast<std::int64_t>(ask_.longest.count())));
    std::string pending;
    came_ = false;
    const auto take = [&](std::string_view piece) {
      pending += piece;
      for (std::size_t end; !ended_ && (end = pending.find('\n')) != pending.npos; pending.erase(0, end + 1))
        if (!line(std::string_view(pending).substr(0, end))) return false;
      return !ended_;
    };
    return api_.stream(
        path, take, [this] { return over(); }, Seconds(0.0));
  }
  // False: the watch has to be restarted.
  bool line(std::string_view text) {
    const Result<Node> event = parse_json(text, "an event");
    const Node* object = event.ok() ? event->find("object") : nullptr;
    if (object == nullptr) return false;  // torn
    const std::string type = text_at(*event, {"type"});
    if (type == "ERROR") {  // 410 within the watch; for any other error the next list reports it
      version_.clear();
      return false;
    }
    came_ = true;
    version_ = text_at(*object, {"metadata", "resourceVersion"});
    if (type != "BOOKMARK") tell({type == "DELETED" ? KubeEvent::Kind::removed : KubeEvent::Kind::present, *object});
    return true;
  }

  KubeApi& api_;
  const WatchRequest& ask_;
  const std::function<bool(const KubeEvent&)>& each_;
  std::string version_;
  Seconds begun_;
  bool ended_ = false, came_ = false;
};

}  // namespace

Status watch(KubeApi& api, const WatchRequest& ask, const std::function<bool(const KubeEvent&)>& each) {
  return Watch(api, ask, each).run();
}

}  // namespace systole
