#pragma once
// What changes among the objects of a list, as it does. A watch that is cut goes on from the version that came last;
// where the server has forgotten that one, everything is listed anew.

#include <functional>
#include <string>

#include "operate/cluster/kube_api.h"

namespace systole {

struct KubeEvent {
  enum class Kind {
    listed,   // what was known before counts no longer; all that there is follows as `present`
    present,  // it is there, or is as it is now
    removed,  // with its last state
  };
  Kind kind = Kind::listed;
  Node object;
};

struct WatchAsk {
  std::string path, labels;
  std::string from;      // a version of the list; empty: listed first
  Seconds longest{0.0};  // then it ends; 0: never
  std::function<bool()> cancelled = {};
};
// Until `each` says false, or it is cancelled, or so long has passed: no error. Errors: io, the server is away for
// longer than the patience of `api`; a refusal.
Status watch(KubeApi& api, const WatchAsk& ask, const std::function<bool(const KubeEvent&)>& each);

}  // namespace systole
