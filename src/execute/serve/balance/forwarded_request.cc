#include "execute/serve/balance/forwarded_request.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "execute/serve/api_routes.h"
#include "execute/serve/balance/shadow_comparison.h"
#include "execute/serve/openai_answers.h"
#include "ground/base/hash.h"

namespace systole {
namespace {

using State = Balancer::State;

constexpr int kMostFailures = 2;                                // replicas that may fail for one request
constexpr std::uint64_t kMostWhole = std::uint64_t{256} << 20;  // bytes of an answer that is no stream
constexpr std::size_t kMostEvent = std::size_t{16} << 20;

// Of one connection, or set by our own server.
constexpr std::array<std::string_view, 7> kNotPassed = {"connection", "keep-alive",     "transfer-encoding", "date",
                                                        "server",     "content-length", "x-request-id"};

HttpResponse response_of(const HttpReplyHead& head) {
  HttpResponse response{.status = head.status, .type = ""};
  for (const auto& [name, value] : head.headers) {
    if (name == "content-type") {
      response.type = value;
    } else if (std::ranges::find(kNotPassed, name) == kNotPassed.end()) {
      response.headers.emplace_back(name, value);
    }
  }
  return response;
}

// Who sends it, so that the replica can let clients take turns; not the token itself.
std::string key_of(const HttpServerRequest& request) { return to_hex(hash64(client_of(request))); }

Error broken(std::string_view how) {
  return error(ErrorKind::interrupted, "the replica that computed this answer failed: {}", how);
}

// What the sink's functions use is of the loop's thread alone, once the first replica was asked; a client's leaving is
// told on the server's thread.
class ForwardedRequest : public HttpReplySink, public std::enable_shared_from_this<ForwardedRequest> {
 public:
  ForwardedRequest(std::shared_ptr<Balancer::State> state, HttpServerRequest request, HttpResponder responder)
      : state_(std::move(state)),
        cost_(request.method == "POST" ? request_cost(request.body) : RequestCost{}),
        key_(key_of(request)),
        body_(request.method == "POST" ? std::make_shared<const std::string>(std::move(request.body)) : nullptr),
        request_(std::move(request)),
        responder_(std::move(responder)),
        // Completions and vectors; the stable replicas tell of the models that there are.
        is_shared_(body_ && request_.path.starts_with("/v1/")),
        version_(is_shared_ && state_->deal(state_->canary_percent, state_->canary_dealt) ? State::kCanary
                                                                                          : State::kStable),
        shadow_(is_shared_ && state_->deal(state_->shadow_percent, state_->shadow_dealt)
                    ? std::make_shared<ShadowComparison>(state_)
                    : nullptr) {}

  void start() {
    state_->count(&BalancerCounts::requests);
    responder_.when_gone([weak = weak_from_this()] {
      if (const auto request = weak.lock()) request->leave();
    });
    ask_next();
    if (shadow_) send_shadow();
  }

  void begin(const HttpReplyHead& head) override {
    answer_ = response_of(head);
    if (!place_.model.empty()) answer_.headers.emplace_back(Balancer::kModelHeader, place_.model);
    is_large_ = head.length.value_or(0) > kMostWhole;
    is_streamed_ = is_stream(head);
    if (!is_streamed_) return;
    has_events_ = answer_.type.starts_with("text/event-stream");
    responder_.begin(answer_);
  }
  Status take(std::string piece) override {
    text_ += piece;
    if (is_streamed_ && !std::exchange(has_first_, true))
      state_->count_stream(place_.replica, seconds_since(asked_at_));
    if (is_streamed_ && shadow_) shadow_->take(ShadowComparison::kUser, piece);
    if (!is_streamed_) {
      if (!is_large_ && text_.size() <= kMostWhole) return {};
      return error(ErrorKind::io, "its answer is too long");
    }
    // An event that was cut would be followed by ours as if it were its own.
    const std::size_t end = has_events_ ? text_.rfind("\n\n") : text_.size();
    if (end == text_.npos) {
      if (text_.size() <= kMostEvent) return {};
      return error(ErrorKind::io, "its events do not end");
    }
    const std::size_t size = has_events_ ? end + 2 : end;
    // A client that reads too slowly: its stream is cut, so that nobody takes it for whole.
    is_lost_ = responder_.write(std::string_view(text_).substr(0, size)) != StreamWrite::taken;
    if (is_lost_) return error(ErrorKind::interrupted, "nobody reads it");
    text_.erase(0, size);
    return {};
  }
  void end(const Status& how) override {
    if (!settle() || is_lost_) return;
    state_->count_attempt(place_.replica, how, answer_.status, seconds_since(asked_at_));
    finish(how);
  }

 private:
  // Its tokens count no more; false: they did not.
  bool settle() {
    {
      const std::lock_guard lock(mutex_);
      if (!std::exchange(is_asked_, false)) return false;
    }
    state_->give_back(place_, cost_.tokens);
    return true;
  }
  void leave() {
    {
      const std::lock_guard lock(mutex_);
      is_gone_ = true;
    }
    if (settle()) state_->upstreams.cancel(number_);
  }

  HttpUpstreamRequest asked_of(const State::Place& place) const {
    HttpUpstreamRequest asked{.to = place.address,
                              .method = request_.method == "HEAD" ? "GET" : request_.method,
                              .target = request_.path + (request_.query.empty() ? "" : "?" + request_.query),
                              .headers = {{"Authorization", "Bearer " + place.token},
                                          {"X-Request-Id", request_.id},
                                          {Balancer::kKeyHeader, key_}},
                              .body = body_};
    if (const std::string* type = request_.header("content-type")) asked.headers.emplace_back("Content-Type", *type);
    return asked;
  }
  void send_shadow() const {
    std::optional<State::Place> place = state_->choose_shadow(cost_);
    if (!place) return;
    HttpUpstreamRequest asked = asked_of(*place);
    state_->upstreams.send(std::move(asked),
                           std::make_shared<ShadowSink>(state_, *std::move(place), cost_.tokens, shadow_));
  }
  void ask_next() {
    std::optional<Balancer::State::Place> place = state_->choose(cost_, tried_, version_);
    if (!place) return give_up();
    place_ = *std::move(place);
    tried_.push_back(place_.replica);
    text_.clear();
    asked_at_ = std::chrono::steady_clock::now();
    HttpUpstreamRequest asked = asked_of(place_);
    bool is_left = false;
    {
      const std::lock_guard lock(mutex_);
      is_asked_ = true;
      is_left = is_gone_;
      if (!is_left) number_ = state_->upstreams.send(std::move(asked), shared_from_this());
    }
    if (is_left) settle();
  }

  void finish(const Status& how) {
    if (how.ok() && is_streamed_) {
      if (text_.empty() || responder_.write(text_) == StreamWrite::taken) responder_.end();
      if (shadow_) shadow_->end(ShadowComparison::kUser, answer_.status);
    } else if (how.ok()) {
      answer_.body = std::move(text_);
      if (!is_refusal(answer_.status)) {
        if (shadow_) {
          shadow_->take(ShadowComparison::kUser, answer_.body);
          shadow_->end(ShadowComparison::kUser, answer_.status);
        }
        return responder_.send(std::move(answer_));
      }
      refusal_ = std::move(answer_);
      ask_next();
    } else if (how.error().kind == ErrorKind::busy) {  // it was not asked, nor could another be
      state_->count(&BalancerCounts::failed);
      responder_.send(refusal(how.error()));
    } else {
      state_->set_ready(place_.replica, place_.begun, false);  // until it says that it is
      fail(how.error());
    }
  }
  void fail(const Error& why) {
    if (is_streamed_) {
      state_->count(&BalancerCounts::failed);
      // Without events there is no place for a word: the stream is cut.
      const std::string event = fmt::format("data: {}\n\n", to_json(error_node(broken(why.message))));
      if (has_events_ && responder_.write(event) == StreamWrite::taken) responder_.end();
      return;
    }
    failure_ = why;
    if (++failures_ == kMostFailures) return give_up();
    state_->count(&BalancerCounts::retries);
    ask_next();
  }
  void give_up() {
    if (refusal_) return responder_.send(*std::move(refusal_));
    state_->count(&BalancerCounts::failed);
    responder_.send(
        refusal(failure_ ? broken(failure_->message) : error(ErrorKind::interrupted, "no replica is ready")));
  }

  const std::shared_ptr<Balancer::State> state_;
  const RequestCost cost_;
  const std::string key_;
  const std::shared_ptr<const std::string> body_;
  const HttpServerRequest request_;  // without its body
  HttpResponder responder_;
  const bool is_shared_;  // by a canary and a shadow
  const State::Version version_;
  const std::shared_ptr<ShadowComparison> shadow_;  // may be null
  std::vector<int> tried_;
  Balancer::State::Place place_;
  std::chrono::steady_clock::time_point asked_at_;  // that replica
  HttpResponse answer_;                             // of the replica that is asked
  std::string text_;                                // of its body, that was not passed on
  bool is_streamed_ = false, has_events_ = false, is_large_ = false, is_lost_ = false, has_first_ = false;
  std::optional<HttpResponse> refusal_;
  std::optional<Error> failure_;
  int failures_ = 0;

  std::mutex mutex_;
  bool is_asked_ = false, is_gone_ = false;  // guarded by mutex_, as the next
  std::uint64_t number_ = 0;
};

}  // namespace

void forward_request(const std::shared_ptr<Balancer::State>& state, HttpServerRequest request,
                     HttpResponder responder) {
  std::make_shared<ForwardedRequest>(state, std::move(request), std::move(responder))->start();
}

}  // namespace systole
