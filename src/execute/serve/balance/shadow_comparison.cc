#include "execute/serve/balance/shadow_comparison.h"

#include <utility>

namespace systole {

std::optional<std::string> generated_text(std::string_view body) {
  constexpr std::string_view kSpaces = " \t\r\n";
  std::optional<std::string> text;
  // Within a string every quote has a backslash before it, so that neither key is found there.
  for (std::size_t at = body.find('"'); at != body.npos; at = body.find('"', at + 1)) {
    const std::string_view rest = body.substr(at);
    const std::string_view key = rest.starts_with("\"text\"")      ? "\"text\""
                                 : rest.starts_with("\"content\"") ? "\"content\""
                                                                   : "";
    if (key.empty()) continue;
    const std::size_t colon = body.find_first_not_of(kSpaces, at + key.size());
    if (colon == body.npos || body[colon] != ':') continue;
    const std::size_t quote = body.find_first_not_of(kSpaces, colon + 1);
    if (quote == body.npos || body[quote] != '"') continue;
    std::size_t end = quote + 1;
    while (end < body.size() && body[end] != '"') end += body[end] == '\\' ? 2 : 1;
    if (end >= body.size()) break;
    if (!text) text.emplace();
    *text += body.substr(quote + 1, end - quote - 1);
    at = end;
  }
  return text;
}

void ShadowComparison::take(Side side, std::string_view piece) {
  if (is_left_out_) return;
  if (bodies_[side].size() + piece.size() <= kMost) {
    bodies_[side] += piece;
  } else {
    is_left_out_ = true;
    bodies_ = {};
  }
}

void ShadowComparison::end(Side side, int status) {
  is_left_out_ = is_left_out_ || status != 200;
  has_ended_[side] = true;
  if (is_left_out_ || !has_ended_[kUser] || !has_ended_[kShadow]) return;
  const std::optional<std::string> users = generated_text(bodies_[kUser]), shadows = generated_text(bodies_[kShadow]);
  if (!users && !shadows) return;
  const std::lock_guard lock(state_->mutex);
  ++(users == shadows ? state_->shadow.same : state_->shadow.different);
}

ShadowSink::ShadowSink(std::shared_ptr<Balancer::State> state, Balancer::State::Place place, std::int64_t tokens,
                       std::shared_ptr<ShadowComparison> comparison)
    : state_(std::move(state)), place_(std::move(place)), tokens_(tokens), comparison_(std::move(comparison)) {}

void ShadowSink::begin(const HttpReplyHead& head) {
  status_ = head.status;
  is_streamed_ = is_stream(head);
}

Status ShadowSink::take(std::string piece) {
  if (is_streamed_ && !std::exchange(has_first_, true)) state_->count_stream(place_.replica, seconds_since(asked_at_));
  comparison_->take(ShadowComparison::kShadow, piece);
  return {};
}

void ShadowSink::end(const Status& how) {
  const bool is_busy = !how.ok() && how.error().kind == ErrorKind::busy;  // it was not sent
  state_->give_back(place_, tokens_);
  state_->count_attempt(place_.replica, how, status_, seconds_since(asked_at_));
  {
    const std::lock_guard lock(state_->mutex);
    --state_->shadow.open;
    if (is_busy || (how.ok() && is_refusal(status_))) ++state_->shadow.dropped;
  }
  if (!how.ok() && !is_busy) state_->set_ready(place_.replica, place_.begun, false);  // until it says that it is
  if (how.ok()) comparison_->end(ShadowComparison::kShadow, status_);
}

}  // namespace systole
