#pragma once
// A token that is fetched again before it ends. One thread fetches at a time: the others use the old token while it
// lasts, or wait.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "ground/base/clock.h"
#include "ground/net/bearer.h"

namespace systole {

struct BearerToken {
  std::string text;
  Seconds lasts{};  // from when it was fetched
};

class RefreshedBearer : public BearerSource {
 public:
  using Fetch = std::function<Result<BearerToken>()>;
  // Fetches when less than `early` is left, but never more than half a token's time.
  RefreshedBearer(Fetch fetch, std::shared_ptr<Clock> clock, Seconds early = Seconds(225.0));

  // Errors: those of `fetch`, once no token lasts.
  Result<std::string> token() override;
  void refused(const std::string& token) override;

 private:
  static constexpr Seconds kPause{10.0};  // between tries, while the old token lasts

  const Fetch fetch_;
  const std::shared_ptr<Clock> clock_;
  const Seconds early_;
  std::mutex mutex_;
  std::condition_variable fetched_;
  bool fetching_ = false;
  std::string text_;
  Seconds renew_{}, ends_{};
  std::int64_t rounds_ = 0;      // fetches that ended
  std::optional<Error> failed_;  // the last one, if it failed
};

}  // namespace systole
