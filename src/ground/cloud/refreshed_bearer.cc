#include "ground/cloud/refreshed_bearer.h"

#include <algorithm>

namespace systole {

RefreshedBearer::RefreshedBearer(Fetch fetch, std::shared_ptr<Clock> clock, Seconds early)
    : fetch_(std::move(fetch)), clock_(std::move(clock)), early_(early) {}

Result<std::string> RefreshedBearer::token() {
  std::unique_lock lock(mutex_);
  while (true) {
    const Seconds now = clock_->now();
    const bool lasts = !text_.empty() && now < ends_;
    if (lasts && (now < renew_ || fetching_)) return text_;
    if (!fetching_) break;
    const std::int64_t round = rounds_;
    fetched_.wait(lock, [&] { return rounds_ != round; });
    if (failed_ && (text_.empty() || clock_->now() >= ends_)) return *failed_;
  }
  fetching_ = true;
  lock.unlock();
  Result<BearerToken> fresh = error(ErrorKind::internal, "no token");
  try {
    fresh = fetch_();
  } catch (const Failure& failure) { fresh = failure.error(); }
  lock.lock();
  fetching_ = false;
  ++rounds_;
  fetched_.notify_all();
  const Seconds now = clock_->now();
  if (fresh.ok()) {
    failed_.reset();
    text_ = fresh->text;
    ends_ = now + fresh->lasts;
    renew_ = ends_ - std::min(early_, fresh->lasts * 0.5);
    return text_;
  }
  failed_ = fresh.error();
  renew_ = now + kPause;
  if (!text_.empty() && now < ends_) return text_;
  return *failed_;
}

void RefreshedBearer::refused(const std::string& token) {
  const std::lock_guard lock(mutex_);
  if (token == text_) text_.clear();
}

}  // namespace systole
