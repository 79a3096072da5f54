#pragma once
// Watches for the preemption of this machine. Google's metadata server announces it for Spot VMs about 30 s before
// (https://cloud.google.com/compute/docs/instances/create-use-spot); other clouds have their own address.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/net/http_get.h"

namespace systole {

struct PreemptionOptions {
  std::string where;  // "off", an address, or "": Google's if this machine is one of theirs, otherwise off
  Seconds every = Seconds(1.0);
};

class PreemptionWatch {
 public:
  // Polls in its own thread. Errors: invalid (no such address).
  static Result<std::unique_ptr<PreemptionWatch>> start(const PreemptionOptions& options);
  ~PreemptionWatch();
  PreemptionWatch(const PreemptionWatch&) = delete;
  PreemptionWatch& operator=(const PreemptionWatch&) = delete;

  bool announced() const { return announced_; }  // stays true
  bool looks() const { return thread_.joinable(); }

 private:
  PreemptionWatch() = default;
  void ask(const HttpPlace& place, Seconds every, const std::stop_token& stop);
  std::atomic<bool> announced_{false};
  std::jthread thread_;
};

}  // namespace systole
