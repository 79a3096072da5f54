#include "ground/net/retry.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "ground/base/number_from.h"
#include "ground/base/philox.h"
#include "ground/net/url.h"

namespace systole {
namespace {

std::uint64_t drawn() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace

bool is_retried(int status) { return status == 408 || status == 429 || (status >= 500 && status != 501); }

std::optional<Seconds> retry_after(const HttpReply& reply) {
  const std::string* text = reply.header("retry-after");
  const std::optional<std::int64_t> seconds = text == nullptr ? std::nullopt : number_from(*text);
  if (!seconds || *seconds < 0) return std::nullopt;
  return Seconds(*seconds);
}

Retries::Retries(const RetryPolicy& policy, Clock& clock) : policy_(policy), clock_(clock), begun_(clock.now()) {
  if (policy_.seed == 0) policy_.seed = drawn();
}

bool Retries::wait(std::optional<Seconds> asked) {
  const Seconds bound = std::min(policy_.most, policy_.first * std::exp2(std::min(tries_ - 1, 30)));
  const std::uint32_t bits = philox(policy_.seed, philox_counter(static_cast<std::uint64_t>(tries_)))[0];
  const Seconds wait = std::max(bound * (bits * 0x1p-32), asked.value_or(Seconds()));
  if (spent() + wait > policy_.total) return false;
  clock_.sleep(wait);
  ++tries_;
  return true;
}

Result<HttpSent> send_with_retries(HttpPool& pool, const RetryPolicy& policy, Clock& clock,
                                   const std::function<Result<HttpRequest>()>& request) {
  Retries retries(policy, clock);
  bool may_be_second = false;
  while (true) {
    HttpRequest next = TRY(request());
    next.once = true;  // a second try is ours to know
    Result<HttpReply> reply = pool.send(next);
    if (reply.ok() && !is_retried(reply->status)) return HttpSent{*std::move(reply), may_be_second};
    if (!reply.ok() && reply.error().kind != ErrorKind::io) return std::move(reply).error();
    may_be_second = may_be_second || !reply.ok() || reply->status >= 500 || reply->status == 408;
    if (retries.wait(reply.ok() ? retry_after(*reply) : std::nullopt)) continue;
    const UrlParts parts(next.url);
    const std::string why = reply.ok()
                                ? fmt::format("{}{} answers with status {}", parts.host, parts.port, reply->status)
                                : reply.error().message;
    return error(ErrorKind::io, "{}; it was tried {} times in {:.0f} s", why, retries.tries(), retries.spent().count());
  }
}

}  // namespace systole
