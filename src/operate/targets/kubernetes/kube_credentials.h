#pragma once
// Our credentials for a cluster, as headers and certificates that can be renewed. Secrets appear in no message,
// argument or file of ours.

#include <mutex>
#include <optional>
#include <string>

#include "ground/base/clock.h"
#include "operate/targets/kubernetes/kubeconfig.h"

namespace systole {

class KubeCredentials {
 public:
  KubeCredentials(KubeAccess access, Clock& clock) : access_(std::move(access)), clock_(clock) {}

  struct Shown {
    HttpHeaders headers;       // Authorization, or none
    PemText certificate, key;  // or empty
    int number = 0;            // changes with each renewal
  };
  // Runs the exec plugin if there are no credentials yet or they have expired. Errors: not_found, its program is not
  // installed, with instructions; invalid, it prints no credentials; io.
  Result<Shown> shown();
  // Renews refused credentials: runs the plugin again, or rereads a token's file. Does nothing if they were renewed
  // meanwhile. False: they cannot be renewed.
  bool renew(const Shown& refused);

  const KubeAccess& access() const { return access_; }

 private:
  Result<Shown> by_plugin();

  KubeAccess access_;
  Clock& clock_;
  std::mutex mutex_;
  std::optional<Shown> kept_;  // from the plugin
  std::optional<std::chrono::system_clock::time_point> until_;
  int number_ = 0;
};

}  // namespace systole
