#include "execute/serve/balance/balancer.h"

#include <array>

#include "execute/serve/balance/forwarded_request.h"
#include "execute/serve/balance/labelled_metrics.h"
#include "ground/base/document.h"

namespace systole {
namespace {

using State = Balancer::State;

constexpr Seconds kAnswersWithin(5.0);                      // questions of the balancer's own
constexpr std::size_t kMostMetrics = std::size_t{4} << 20;  // bytes of one replica

HttpUpstreamRequest question(const State::Replica& replica, const char* target) {
  return {.to = *replica.address,
          .target = target,
          .headers = {{"Authorization", "Bearer " + replica.token}},
          .timeout = kAnswersWithin};
}

class HealthQuestion : public HttpReplySink {
 public:
  HealthQuestion(std::shared_ptr<State> state, int replica, std::uint64_t begun)
      : state_(std::move(state)), replica_(replica), begun_(begun) {}
  void begin(const HttpReplyHead& head) override { status_ = head.status; }
  Status take(std::string) override { return {}; }
  void end(const Status& how) override {
    const std::lock_guard lock(state_->mutex);
    State::Replica& asked = state_->replicas[static_cast<std::size_t>(replica_)];
    if (asked.begun != begun_ || !asked.address) return;
    asked.is_asked = false;
    if (!how.ok() && how.error().kind == ErrorKind::busy) {  // this process could not ask
      asked.unanswered = 0;
      return;
    }
    asked.unanswered = how.ok() ? 0 : asked.unanswered + 1;
    state_->choice.set_ready(replica_, how.ok() && status_ == 200);
  }

 private:
  const std::shared_ptr<State> state_;
  const int replica_;
  const std::uint64_t begun_;
  int status_ = 0;
};

// What compares the stable replicas, the canary and the shadow. REQUIRES: the state's lock is held.
std::string version_metrics(const State& state) {
  std::string text;
  const auto head = [&](const char* name, const char* type, const char* help) {
    text += fmt::format("# HELP systole:{0} {1}\n# TYPE systole:{0} {2}\n", name, help, type);
  };
  struct Shown {
    State::Version version;
    const char* label;
    bool is_there;
  };
  const std::array<Shown, 3> all = {{{State::kStable, "stable", true},
                                     {State::kCanary, "canary", state.canary_percent > 0},
                                     {State::kShadow, "shadow", state.shadow_percent > 0}}};
  const auto of_each = [&](const char* name, auto value) {
    for (const Shown& each : all)
      if (each.is_there)
        text += fmt::format("systole:version_{}{{version=\"{}\"}} {}\n", name, each.label,
                            value(state.versions[each.version]));
  };
  using Counts = State::VersionCounts;
  head("version_requests_total", "counter", "Requests at a version that have ended; not those it had no place for.");
  of_each("requests_total", [](const Counts& of) { return of.requests; });
  head("version_errors_total", "counter", "Those without an answer, with a part of one, or with status 5xx.");
  of_each("errors_total", [](const Counts& of) { return of.errors; });
  head("version_latency_seconds", "summary", "From the request to the end of an answer with status 200.");
  of_each("latency_seconds_sum", [](const Counts& of) { return of.answered_in.count(); });
  of_each("latency_seconds_count", [](const Counts& of) { return of.answers; });
  head("version_time_to_first_token_seconds", "summary", "From the request to the first piece of a stream.");
  of_each("time_to_first_token_seconds_sum", [](const Counts& of) { return of.first_piece_in.count(); });
  of_each("time_to_first_token_seconds_count", [](const Counts& of) { return of.streams; });
  if (state.shadow_percent == 0) return text;
  const auto counter = [&](const char* name, const char* help, std::int64_t value) {
    head(name, "counter", help);
    text += fmt::format("systole:{} {}\n", name, value);
  };
  counter("shadow_same_text_total", "Requests that the shadow answered with the same text.", state.shadow.same);
  counter("shadow_different_text_total", "Requests that it answered with another text.", state.shadow.different);
  counter("shadow_dropped_total", "Requests that it was not sent or had no place for.", state.shadow.dropped);
  return text;
}

std::string own_metrics(State& state) {
  const std::lock_guard lock(state.mutex);
  std::string text;
  const auto metric = [&](const char* name, const char* type, const char* help, std::int64_t value) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, type, value);
  };
  metric("systole:replicas_ready", "gauge", "Replicas that take requests.", state.stable_ready());
  metric("systole:balancer_requests_total", "counter", "Requests that were passed on.", state.counts.requests);
  metric("systole:balancer_retries_total", "counter", "Requests that went to another replica after one had failed.",
         state.counts.retries);
  metric("systole:balancer_failed_total", "counter", "Requests that no replica answered to their end.",
         state.counts.failed);
  text +=
      "# HELP systole:outstanding_tokens Tokens of requests under way, as estimated from their bytes.\n"
      "# TYPE systole:outstanding_tokens gauge\n";
  for (std::size_t i = 0; i < state.replicas.size(); ++i)
    text +=
        fmt::format("systole:outstanding_tokens{{replica=\"{}\"}} {}\n", i, state.choice.tokens(static_cast<int>(i)));
  if (state.canary_percent > 0 || state.shadow_percent > 0) text += version_metrics(state);
  return text;
}

// The metrics of all replicas; the last one that ends answers. Of the loop's thread, but for the constructor.
class GatheredMetrics {
 public:
  std::vector<std::pair<int, std::string>> texts;  // by replica

  GatheredMetrics(std::shared_ptr<State> state, HttpResponder responder)
      : state_(std::move(state)), responder_(std::move(responder)) {}
  GatheredMetrics(const GatheredMetrics&) = delete;
  ~GatheredMetrics() {
    responder_.send(
        {.type = "text/plain; version=0.0.4; charset=utf-8", .body = labelled_metrics(texts) + own_metrics(*state_)});
  }

 private:
  const std::shared_ptr<State> state_;
  HttpResponder responder_;
};

class MetricsQuestion : public HttpReplySink {
 public:
  MetricsQuestion(std::shared_ptr<GatheredMetrics> all, std::size_t index) : all_(std::move(all)), index_(index) {}
  void begin(const HttpReplyHead& head) override { status_ = head.status; }
  Status take(std::string piece) override {
    text_ += piece;
    if (text_.size() > kMostMetrics) return error(ErrorKind::io, "its metrics are too long");
    return {};
  }
  void end(const Status& how) override {
    if (how.ok() && status_ == 200) all_->texts[index_].second = std::move(text_);
  }

 private:
  const std::shared_ptr<GatheredMetrics> all_;
  const std::size_t index_;
  int status_ = 0;
  std::string text_;
};

void answer_metrics(const std::shared_ptr<State>& state, HttpResponder responder) {
  const auto all = std::make_shared<GatheredMetrics>(state, std::move(responder));
  std::vector<HttpUpstreamRequest> questions;
  {
    const std::lock_guard lock(state->mutex);
    for (std::size_t i = 0; i < state->replicas.size(); ++i) {
      if (!state->replicas[i].address) continue;
      all->texts.emplace_back(static_cast<int>(i), "");
      questions.push_back(question(state->replicas[i], "/metrics"));
    }
  }
  for (std::size_t i = 0; i < questions.size(); ++i)
    state->upstreams.send(std::move(questions[i]), std::make_shared<MetricsQuestion>(all, i));
}

HttpResponse health(State& state) {
  const std::lock_guard lock(state.mutex);
  const int ready = state.stable_ready();
  return {
      .status = ready > 0 ? 200 : 503,
      .body = to_json(Node::map(
          {{"status", ready > 0 ? "ready" : "no replica is ready"}, {"replicas", state.stable()}, {"ready", ready}}))};
}

}  // namespace

Balancer::Balancer(int replicas, HttpUpstreams& upstreams, int canary_percent, int shadow_percent) {
  const int places = replicas + (canary_percent > 0 ? 1 : 0) + (shadow_percent > 0 ? 1 : 0);
  state_.reset(new State{.upstreams = upstreams,
                         .choice = ReplicaChoice(places),
                         .replicas = std::vector<State::Replica>(static_cast<std::size_t>(places)),
                         .canary_percent = canary_percent,
                         .shadow_percent = shadow_percent});
}

std::vector<HttpRoute> Balancer::routes() const {
  const auto passes = [this](const char* method, const char* pattern) {
    return HttpRoute{method, pattern, [state = state_](HttpServerRequest request, HttpResponder responder) {
                       forward_request(state, std::move(request), std::move(responder));
                     }};
  };
  using Request = const HttpServerRequest&;
  const auto is_ready = [state = state_](Request, HttpResponder responder) { responder.send(health(*state)); };
  return {
      passes("POST", "/v1/{route*}"),
      passes("GET", "/v1/{route*}"),
      passes("POST", "/tokenize"),
      passes("POST", "/detokenize"),
      {"GET", "/health/live",
       [](Request, HttpResponder responder) {
         responder.send({.body = to_json(Node::map({{"status", "live"}}))});
       },
       false},
      {"GET", "/health/ready", is_ready, false},
      {"GET", "/health", is_ready, false},
      {"GET", "/metrics",
       [state = state_](Request, HttpResponder responder) { answer_metrics(state, std::move(responder)); }},
  };
}

void Balancer::begin(int replica, const NetAddress& address, const std::string& token, const std::string& model) {
  const std::lock_guard lock(state_->mutex);
  State::Replica& begun = state_->replicas[static_cast<std::size_t>(replica)];
  begun = {
      .address = address, .token = token, .model = model, .begun = begun.begun + 1, .left = begun.left + begun.open};
  state_->choice.forget(replica);
  state_->choice.set_ready(replica, true);
}

void Balancer::retire(int replica) {
  const std::lock_guard lock(state_->mutex);
  state_->replicas[static_cast<std::size_t>(replica)].address.reset();
  state_->choice.set_ready(replica, false);
}

void Balancer::check_health() {
  const std::lock_guard lock(state_->mutex);
  for (std::size_t i = 0; i < state_->replicas.size(); ++i) {
    State::Replica& replica = state_->replicas[i];
    if (!replica.address || std::exchange(replica.is_asked, true)) continue;
    state_->upstreams.send(question(replica, "/health/ready"),
                           std::make_shared<HealthQuestion>(state_, static_cast<int>(i), replica.begun));
  }
}

int Balancer::unanswered(int replica) const {
  const std::lock_guard lock(state_->mutex);
  const State::Replica& asked = state_->replicas[static_cast<std::size_t>(replica)];
  return asked.address ? asked.unanswered : 0;
}

int Balancer::left_open(int replica) const {
  const std::lock_guard lock(state_->mutex);
  return state_->replicas[static_cast<std::size_t>(replica)].left;
}

int Balancer::ready() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stable_ready();
}

BalancerCounts Balancer::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}

}  // namespace systole
