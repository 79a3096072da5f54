#pragma once
// Watches a list of objects for changes. An interrupted watch continues from the last version; if the server has
// expired it, everything is listed again.

#include <functional>
#include <string>

#include "operate/targets/kubernetes/kube_api.h"

namespace systole {

struct KubeEvent {
  enum class Kind {
    listed,   // earlier knowledge is void; all existing objects follow as `present`
    present,  // it exists or has changed
    removed,  // with its last state
  };
  Kind kind = Kind::listed;
  Node object;
};

struct WatchRequest {
  std::string path, labels;
  std::string from;      // a list version; empty: lists first
  Seconds longest{0.0};  // then it ends; 0: no limit
  std::function<bool()> cancelled = {};
};
// Ends without an error when `each` returns false, it is cancelled, or the time is over. Errors: io, the server is away
// for longer than the patience of `api`; a refusal.
Status watch(KubeApi& api, const WatchRequest& ask, const std::function<bool(const KubeEvent&)>& each);

}  // namespace systole
