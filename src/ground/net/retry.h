#pragma once
// When a request is tried again: after a lost connection, and after an answer that says "later" (408, 429, 5xx). The
// waits double, and of each a random share is waited ("full jitter", so that clients which failed together do not come
// back together), or what the server asks for (Retry-After) if that is longer. No try begins after a total time.

#include <cstdint>
#include <functional>
#include <optional>

#include "ground/base/clock.h"
#include "ground/net/http_pool.h"

namespace systole {

struct RetryPolicy {
  Seconds first{0.25}, most{16.0};  // bounds of the n-th wait: first·2ⁿ, but at most `most`
  Seconds total{60.0};
  std::uint64_t seed = 0;  // of the shares; 0: drawn from the system
};

bool is_retried(int status);
// What the answer asks to wait, in seconds; nothing if it does not, or gives a date.
std::optional<Seconds> retry_after(const HttpReply& reply);

// The waits of one request.
class Retries {
 public:
  Retries(const RetryPolicy& policy, Clock& clock);
  // Waits; false at once if the next try would begin after the total time.
  bool wait(std::optional<Seconds> asked = {});
  int tries() const { return tries_; }  // from 1
  Seconds spent() { return clock_.now() - begun_; }

 private:
  RetryPolicy policy_;
  Clock& clock_;
  Seconds begun_;
  int tries_ = 1;
};

struct HttpSent {
  HttpReply reply;
  // An earlier try was lost, or failed at the server: it may have taken effect.
  bool may_be_second = false;
};

// Sends what `request` makes until the answer is none that is_retried; each try is made anew, so that it can show a new
// token or go on where the last one was cut. Errors: io (no such answer in the total time: the last reason), does_not_fit
// and invalid as HttpClient::send; those of `request`.
Result<HttpSent> send_with_retries(HttpPool& pool, const RetryPolicy& policy, Clock& clock,
                                   const std::function<Result<HttpRequest>()>& request);

}  // namespace systole
