#pragma once
// Who we are to a cluster, as headers and certificates that may be renewed. What they hold is in no message, argument
// or file of ours.

#include <mutex>
#include <optional>
#include <string>

#include "ground/base/clock.h"
#include "operate/cluster/kubeconfig.h"

namespace systole {

class KubeCredentials {
 public:
  KubeCredentials(KubeAccess access, Clock& clock) : access_(std::move(access)), clock_(clock) {}

  struct Shown {
    HttpHeaders headers;       // Authorization, or none
    PemText certificate, key;  // or empty
    int number = 0;            // another one after each renewal
  };
  // Runs the exec plugin when there are none yet or they have expired. Errors: not_found, its program is not here, with
  // how to get it; invalid, it prints no credentials; io.
  Result<Shown> shown();
  // These were refused: the plugin is run again, a token's file is read again. Nothing when they were renewed
  // meanwhile. False: there is nothing to renew.
  bool renew(const Shown& refused);

  const KubeAccess& access() const { return access_; }

 private:
  Result<Shown> by_plugin();

  KubeAccess access_;
  Clock& clock_;
  std::mutex mutex_;
  std::optional<Shown> kept_;  // the plugin's
  std::optional<std::chrono::system_clock::time_point> until_;
  int number_ = 0;
};

}  // namespace systole
