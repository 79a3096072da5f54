#include "execute/serve/eval/judge.h"

#include <algorithm>

#include "ground/base/counted.h"
#include "ground/base/number_from.h"
#include "ground/base/shown_text.h"
#include "ground/net/url.h"

namespace systole {
namespace {

constexpr double kFirstWait = 1, kLongestWait = 30, kLongestAsked = 60;  // seconds

Error interrupted() { return error(ErrorKind::interrupted, "the judge was interrupted"); }

bool is_passing(int status) { return status == 408 || status == 429 || status >= 500; }

std::string text_in(const Node& map, std::string_view key) {
  const Node* const found = map.find(key);
  return found != nullptr && found->kind() == NodeKind::string ? found->text() : std::string();
}

// Sets the score of what was said, or why there is none.
void take_score(const JudgeSpec& spec, Judgement& judgement) {
  const Result<std::optional<std::string>> taken = spec.pattern.first(judgement.text);
  if (!taken.ok()) {
    judgement.why = taken.error().message;
    return;
  }
  const std::optional<double> score = *taken ? number_from<double>(**taken) : std::nullopt;
  if (!score) {
    judgement.why = "the judge said no score";
  } else if (!(*score >= spec.lowest && *score <= spec.highest)) {
    judgement.why =
        fmt::format("the judge's score is {:g}, which is not between {:g} and {:g}", *score, spec.lowest, spec.highest);
  } else {
    judgement.score = score;
  }
}

Result<Judgement> read_reply(const std::string& body, const JudgeSpec& spec) {
  const Node reply = TRY(parse_json(body, "reply"));
  const Node* const choices = TRY(reply.get("choices"));
  if (choices->items().empty()) return choices->wrong("a list of choices");
  const Node& choice = choices->items()[0];
  const Node* const message = TRY(choice.get("message"));
  Judgement made;
  made.text = text_in(*message, "refusal");
  if (!made.text.empty() || text_in(choice, "finish_reason") == "content_filter") {
    made.why = "the judge refused";
    return made;
  }
  made.text = text_in(*message, "content");
  take_score(spec, made);
  return made;
}

std::string body_of(const JudgeSpec& spec, const std::string& prompt) {
  Node body = Node::map({{"model", spec.model},
                         {"messages", Node::sequence({Node::map({{"role", "user"}, {"content", prompt}})})},
                         {"temperature", 0}});
  if (spec.tokens) body.set("max_tokens", *spec.tokens);
  return to_json(body);
}

// Seconds before the next try.
double wait_after(const HttpReply& reply, double otherwise) {
  const std::string* const asked = reply.header("retry-after");
  const std::optional<std::int64_t> seconds = asked == nullptr ? std::nullopt : number_from(*asked);
  return seconds && *seconds >= 0 ? std::min(static_cast<double>(*seconds), kLongestAsked) : otherwise;
}

}  // namespace

Result<Judge> Judge::open(const JudgeSpec& spec, Clock& clock) { return Judge(spec, clock, TRY(HttpClient::open({}))); }

std::string Judge::without_key(std::string text) const {
  for (std::size_t at = 0; !spec_.key.empty() && (at = text.find(spec_.key, at)) != text.npos; at += 3)
    text.replace(at, spec_.key.size(), "***");
  return text;
}

// The start of a server's text, without the key.
std::string Judge::shown(std::string text) const {
  constexpr std::size_t kMost = 200;
  text = without_key(std::move(text));
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return printable(text);
}

// False: it was cancelled.
bool Judge::wait(Seconds time, const std::function<bool()>& cancelled) {
  constexpr double kSlice = 0.2;
  for (double left = time.count(); left > 0; left -= kSlice) {
    if (cancelled()) return false;
    clock_.sleep(Seconds(std::min(left, kSlice)));
  }
  return !cancelled();
}

Result<Judgement> Judge::score(const Node& fields, const std::function<bool()>& cancelled) {
  const std::string prompt = TRY(spec_.prompt.fill(fields));
  HttpRequest request{.method = "POST",
                      .url = spec_.url + "/chat/completions",
                      .headers = {{"Content-Type", "application/json"}},
                      .body = body_of(spec_, prompt),
                      .timeout = spec_.timeout,
                      .most = kMiB * 16,
                      .cancelled = cancelled};
  if (!spec_.key.empty()) request.headers.emplace_back("Authorization", "Bearer " + spec_.key);
  const UrlParts parts(spec_.url);
  const std::string host = parts.host + parts.port;
  double pause = kFirstWait;
  for (std::int64_t retry = 0;; ++retry) {
    double next = pause;
    std::string why;
    const Result<HttpReply> reply = client_->send(request);
    if (!reply.ok()) {
      if (reply.error().kind != ErrorKind::io) return reply.error();
      why = reply.error().message;
    } else if (reply->ended) {
      return interrupted();
    } else if (reply->status / 100 == 2) {
      Result<Judgement> made = read_reply(reply->body, spec_);
      if (made.ok()) {
        made->text = without_key(std::move(made->text));
        return made;
      }
      why = "the reply is no chat completion: " + shown(made.error().message);
    } else {
      why = fmt::format("status {}: {}", reply->status, shown(reply->body));
      if (!is_passing(reply->status)) {
        return error(ErrorKind::invalid, "the judge at {} does not answer: {}", host, why)
            .hinted(reply->status == 401 || reply->status == 403 ? "judge: { key: env:NAME } or { key: file:PATH }"
                                                                 : "look at url and model of the suite's judge");
      }
      next = wait_after(*reply, pause);
    }
    if (retry == spec_.retries) {
      return error(ErrorKind::io, "the judge at {} gave no score in {}: {}", host, counted(retry + 1, "try"), why)
          .hinted("judge: { timeout: 5min, retries: 10 } is more patient");
    }
    if (!wait(Seconds(next), cancelled)) return interrupted();
    pause = std::min(2 * pause, kLongestWait);
  }
}

}  // namespace systole
