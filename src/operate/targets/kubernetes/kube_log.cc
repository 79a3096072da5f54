#include "operate/targets/kubernetes/kube_log.h"

#include "ground/base/iso_time.h"
#include "ground/net/url.h"

namespace systole {
namespace {

std::string path_of(const LogPlace& place, bool follow, const std::string& since) {
  std::string path = fmt::format("/api/v1/namespaces/{}/pods/{}/log?container={}&timestamps=true",
                                 url_encoded(place.name_space), url_encoded(place.pod), url_encoded(place.container));
  if (follow) path += "&follow=true";
  if (!since.empty()) path += "&sinceTime=" + url_encoded(since);
  return path;
}

enum class State { waits, runs, ended, gone };

Result<State> state_of(KubeApi& api, const LogPlace& place) {
  const std::optional<Node> pod = TRY(
      api.find(fmt::format("/api/v1/namespaces/{}/pods/{}", url_encoded(place.name_space), url_encoded(place.pod))));
  if (!pod) return State::gone;
  for (const char* list : {"containerStatuses", "initContainerStatuses"})
    if (const Node* all = at(*pod, {"status", list}))
      for (const Node& one : all->items()) {
        if (text_at(one, {"name"}) != place.container) continue;
        if (at(one, {"state", "running"}) != nullptr) return State::runs;
        if (at(one, {"state", "terminated"}) != nullptr) return State::ended;
      }
  const std::string phase = text_at(*pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed" ? State::ended : State::waits;
}

}  // namespace

std::string LogLines::begin() {
  pending_.clear();
  passed_ = last_;
  to_pass_ = at_last_;
  return last_ ? to_iso8601(std::chrono::floor<std::chrono::seconds>(*last_)) : "";
}

// False if the text is not a log line, but an answer of another server.
bool LogLines::line(std::string_view text, std::string& to) {
  const std::size_t space = std::min(text.find(' '), text.size());
  const Result<Time> time = from_iso8601(text.substr(0, space));
  if (!time.ok()) return false;
  if (passed_ && *time < *passed_) return true;
  if (passed_ && *time == *passed_ && to_pass_ > 0) {
    --to_pass_;
    return true;
  }
  at_last_ = last_ == *time ? at_last_ + 1 : 1;
  last_ = *time;
  to += text.substr(std::min(space + 1, text.size()));
  to += '\n';
  return true;
}

std::string LogLines::take(std::string_view piece) {
  pending_ += piece;
  std::string lines;
  std::size_t at = 0;
  for (std::size_t end; (end = pending_.find('\n', at)) != pending_.npos; at = end + 1)
    if (!line(std::string_view(pending_).substr(at, end - at), lines)) lines += pending_.substr(at, end - at) + "\n";
  pending_.erase(0, at);
  return lines;
}

std::string LogLines::rest() {
  std::string lines;
  if (!pending_.empty() && !line(pending_, lines)) lines = pending_ + "\n";
  pending_.clear();
  return lines;
}

Result<std::string> read_log(KubeApi& api, const LogPlace& place, LogLines& lines) {
  std::string text;
  const std::string path = path_of(place, false, lines.begin());
  const Result<KubeReply> reply = api.stream(
      path, [&](std::string_view piece) { return text += lines.take(piece), true; }, {}, Seconds(30.0));
  if (!reply.ok()) {
    if (text.empty()) return reply.error();
    return text;
  }
  if (reply->status == 400 || reply->status == 404) return text;  // it waits to start, or is gone
  if (!reply->ok()) return refusal_of(*reply, "log of " + place.pod);
  return text + lines.rest();
}

Status follow_log(KubeApi& api, const LogPlace& place, LogLines& lines,
                  const std::function<bool(const std::string& lines)>& give, const std::function<bool()>& cancelled) {
  constexpr Seconds kPause{0.3};
  bool wanted = true;
  const auto hand_on = [&](const std::string& text) {
    if (!text.empty()) wanted = give(text);
    return wanted;
  };
  while (true) {
    const State before = TRY(state_of(api, place));
    if (before == State::gone) return {};
    const bool last = before == State::ended;
    if (before != State::waits) {
      const std::string path = path_of(place, !last, lines.begin());
      const Result<KubeReply> reply = api.stream(
          path, [&](std::string_view piece) { return hand_on(lines.take(piece)); }, cancelled, Seconds(0.0));
      if (!wanted || (cancelled && cancelled())) return {};
      const bool whole = reply.ok() && reply->ok();
      if (whole && last) {
        hand_on(lines.rest());
        return {};
      }
      if (reply.ok() && reply->status / 100 == 4 && reply->status != 400 && reply->status != 404 &&
          reply->status != 429)
        return refusal_of(*reply, "log of " + place.pod);
      if (!reply.ok() && reply.error().kind != ErrorKind::io) return reply.error();
    }
    if (cancelled && cancelled()) return {};
    api.clock().sleep(kPause);
  }
}

}  // namespace systole
