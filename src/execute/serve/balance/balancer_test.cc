// A balancer before servers that answer what the test says.
#include "execute/serve/balance/balancer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "ground/base/document.h"
#include "ground/net/http_client.h"
#include "ground/net/testing/fake_upstream.h"
#include "ground/net/testing/http_wire.h"
#include "ground/net/testing/no_free_descriptor.h"

namespace systole {
namespace {

using Reply = FakeUpstream::Reply;
using Answer = std::function<Reply(const std::string& request)>;

constexpr const char* kAsked = R"({"model": "m", "prompt": "All", "max_tokens": 8})";

class BalancerTest : public testing::Test {
 protected:
  // One replica for each.
  void start(std::vector<Answer> answers, int canary_percent = 0, int shadow_percent = 0) {
    for (Answer& answer : answers) replicas_.push_back(std::make_unique<FakeUpstream>(std::move(answer)));
    const int stable = static_cast<int>(replicas_.size()) - (canary_percent > 0 ? 1 : 0) - (shadow_percent > 0 ? 1 : 0);
    balancer_ = std::make_unique<Balancer>(stable, *upstreams_, canary_percent, shadow_percent);
    server_ = HttpServer::start({.routes = balancer_->routes(), .tokens = {"ours"}}).value();
    for (std::size_t i = 0; i < replicas_.size(); ++i)
      balancer_->begin(static_cast<int>(i), replicas_[i]->address(), "theirs");
  }
  HttpReply send(const std::string& method, const std::string& path, const std::string& body = "") {
    HttpRequest request{.method = method, .url = "http://" + to_string(server_->address()) + path};
    request.headers = {{"Authorization", "Bearer ours"}, {"Content-Type", "application/json"}};
    request.body = body;
    return client_->send(request).value();
  }
  HttpReply complete() { return send("POST", "/v1/completions", kAsked); }
  static std::string json(const HttpReply& reply) { return parse_json(reply.body, "reply").value().text_at("text"); }
  HttpWire streaming() const {
    HttpWire wire(server_->address());
    wire.say(
        fmt::format("POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ours\r\nContent-Length: {}\r\n"
                    "\r\n{}",
                    std::string_view(kAsked).size(), kAsked));
    return wire;
  }
  static bool comes_true(const std::function<bool()>& holds) {
    for (int i = 0; i < 10'000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return holds();
  }

  std::vector<std::unique_ptr<FakeUpstream>> replicas_;
  const std::unique_ptr<HttpUpstreams> upstreams_ = HttpUpstreams::start().value();
  std::unique_ptr<Balancer> balancer_;
  std::unique_ptr<HttpServer> server_;
  const std::unique_ptr<HttpClient> client_ = HttpClient::open({}).value();
};

Answer says(int status, const std::string& body, const std::string& headers = "") {
  return [=](const std::string&) { return Reply{FakeUpstream::whole(status, body, headers)}; };
}
Answer writes(const std::string& text) {
  return [=](const std::string&) { return Reply{text}; };
}

TEST_F(BalancerTest, passes_a_request_on_and_its_answer_back) {
  std::string asked;
  start({[&](const std::string& request) {
    asked = request;
    return Reply{FakeUpstream::whole(404, R"({"no": 1})", "X-A: b\r\nServer: other\r\n")};
  }});
  const HttpReply reply = send("POST", "/v1/completions?x=1", kAsked);
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.body, R"({"no": 1})");
  ASSERT_NE(reply.header("x-a"), nullptr);
  EXPECT_EQ(*reply.header("x-a"), "b");
  EXPECT_EQ(*reply.header("server"), "systole");
  EXPECT_TRUE(asked.starts_with("POST /v1/completions?x=1 HTTP/1.1\r\n")) << asked;
  EXPECT_TRUE(asked.ends_with(kAsked)) << asked;
  EXPECT_NE(asked.find("Authorization: Bearer theirs\r\n"), asked.npos) << asked;
  EXPECT_EQ(asked.find("ours"), asked.npos) << "the client's token stays here: " << asked;
  EXPECT_NE(asked.find("x-systole-key: "), asked.npos) << asked;
  EXPECT_EQ(send("GET", "/nothing").status, 404);
  EXPECT_EQ(replicas_[0]->requests(), 1);
  EXPECT_EQ(client_->send({.url = "http://" + to_string(server_->address()) + "/v1/models"}).value().status, 401);
}

TEST_F(BalancerTest, a_token_is_one_client_however_it_is_shown) {
  std::vector<std::string> keys;
  start({[&](const std::string& request) {
    const std::size_t begin = request.find("x-systole-key: ");
    keys.push_back(request.substr(begin, request.find("\r\n", begin) - begin));
    return Reply{FakeUpstream::whole(200, "{}")};
  }});
  for (const char* shown : {"Bearer ours", "bearer ours"}) {
    HttpRequest request{.method = "GET", .url = "http://" + to_string(server_->address()) + "/v1/models"};
    request.headers = {{"Authorization", shown}};
    EXPECT_EQ(client_->send(request).value().status, 200);
  }
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0], keys[1]);
}

TEST_F(BalancerTest, equal_prompts_stay_and_others_take_turns) {
  start({says(200, "{}"), says(200, "{}")});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(complete().status, 200);
  EXPECT_EQ(replicas_[0]->requests() * replicas_[1]->requests(), 0) << "one has its beginning in its cache";
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(send("POST", "/v1/completions", fmt::format(R"({{"prompt": "{}"}})", i)).status, 200);
  EXPECT_GT(replicas_[0]->requests() * replicas_[1]->requests(), 0);
}

TEST_F(BalancerTest, a_stream_passes_as_it_comes_and_ends_with_its_client) {
  start({[](const std::string& request) {
    if (request.starts_with("GET /metrics ")) return Reply{FakeUpstream::whole(200, "")};
    return Reply{FakeUpstream::kEvents + FakeUpstream::chunk("data: 1\n\n") + FakeUpstream::chunk("data: 2"), true};
  }});
  HttpWire wire = streaming();
  const std::string head = wire.until("\r\n\r\n");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200")) << head;
  EXPECT_NE(head.find("text/event-stream"), head.npos) << head;
  EXPECT_EQ(wire.chunk(), "data: 1\n\n");
  wire.hang_up();
  EXPECT_TRUE(replicas_[0]->is_left());
  EXPECT_TRUE(comes_true([&] {
    return send("GET", "/metrics").body.find("systole:outstanding_tokens{replica=\"0\"} 0\n") != std::string::npos;
  })) << "its tokens count no more";
}

TEST_F(BalancerTest, a_request_that_no_byte_answered_goes_to_another_replica_once) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
  for (const std::string& wrong :
       {std::string(), std::string("garbage\r\n\r\n"), std::string("HTTP/1.1 200 OK\r\nConte"),
        head + "Content-Length: 10\r\n\r\n{\"a\"", head + "\r\n{}", head + "Content-Length: 9999999999999\r\n\r\n{}",
        head + std::string(100'000, 'x')}) {
    replicas_.clear();
    start({writes(wrong), says(200, "{}"), writes(wrong)});
    EXPECT_EQ(complete().status, 200) << wrong.substr(0, 90);
    EXPECT_EQ(balancer_->counts().retries, 1);
    EXPECT_EQ(replicas_[0]->requests(), 1);
    EXPECT_EQ(replicas_[2]->requests(), 0);
    EXPECT_EQ(balancer_->ready(), 2) << "until it says that it is ready";
    server_.reset();
  }
  replicas_.clear();
  start({writes(""), writes(""), says(200, "{}")});
  const HttpReply reply = complete();
  EXPECT_EQ(reply.status, 503) << reply.body;
  EXPECT_NE(reply.body.find("the replica that computed this answer failed"), std::string::npos) << reply.body;
  EXPECT_EQ(reply.body.find("127.0.0.1"), std::string::npos) << "where a replica listens is nobody's business";
  EXPECT_NE(reply.header("retry-after"), nullptr);
  EXPECT_EQ(replicas_[2]->requests(), 0) << "a request that ends replicas must not end them all";
  EXPECT_EQ(balancer_->counts().failed, 1);
}

TEST_F(BalancerTest, a_stream_that_is_cut_ends_with_an_error_after_its_last_whole_event) {
  start({writes(FakeUpstream::kEvents + FakeUpstream::chunk("data: 1\n\ndata: {\"ha")), says(200, "{}")});
  HttpWire wire = streaming();
  const std::string answer = wire.answer();
  const std::string events = answer.substr(answer.find("\r\n\r\n") + 4);
  ASSERT_TRUE(events.starts_with("data: 1\n\ndata: {\"error\"")) << events;
  ASSERT_TRUE(events.ends_with("}\n\n")) << events;
  const Node error = parse_json(events.substr(15, events.size() - 17), "event").value();
  EXPECT_NE(error.find("error")->text_at("message").find("the replica"), std::string::npos) << events;
  EXPECT_EQ(replicas_[1]->requests(), 0) << "its first token is with the client";
}

TEST_F(BalancerTest, who_has_no_place_is_passed_over) {
  start({says(429, R"({"full": 0})", "Retry-After: 7\r\n"), says(200, "{}")});
  EXPECT_EQ(complete().status, 200);
  EXPECT_EQ(replicas_[0]->requests() + replicas_[1]->requests(), 2);
  EXPECT_EQ(balancer_->counts().retries, 0);
  server_.reset();
  replicas_.clear();
  start({says(429, R"({"full": 0})", "Retry-After: 7\r\n"), says(429, R"({"full": 1})", "Retry-After: 7\r\n")});
  const HttpReply full = complete();
  EXPECT_EQ(full.status, 429);
  EXPECT_TRUE(full.body.starts_with(R"({"full")")) << full.body;
  ASSERT_NE(full.header("retry-after"), nullptr);
  EXPECT_EQ(*full.header("retry-after"), "7");
}

TEST_F(BalancerTest, health_is_that_of_any_replica) {
  std::atomic<bool> healthy = true;
  start({[&](const std::string& request) {
    const bool is_health = request.starts_with("GET /health/ready ");
    return Reply{FakeUpstream::whole(is_health && !healthy ? 503 : 200, "{}")};
  }});
  EXPECT_EQ(send("GET", "/health/ready").status, 200);
  EXPECT_EQ(send("GET", "/health/live").status, 200);
  EXPECT_EQ(send("GET", "/health").status, 200);
  healthy = false;
  balancer_->check_health();
  EXPECT_TRUE(comes_true([&] { return balancer_->ready() == 0; }));
  EXPECT_EQ(send("GET", "/health").status, 503);
  EXPECT_EQ(send("GET", "/health/ready").status, 503);
  const HttpReply reply = complete();
  EXPECT_EQ(reply.status, 503);
  EXPECT_NE(reply.body.find("no replica is ready"), std::string::npos) << reply.body;
  healthy = true;
  balancer_->check_health();
  EXPECT_TRUE(comes_true([&] { return balancer_->ready() == 1; }));
  EXPECT_EQ(complete().status, 200);
  balancer_->retire(0);
  EXPECT_EQ(complete().status, 503);
  balancer_->begin(0, replicas_[0]->address(), "theirs");
  EXPECT_EQ(complete().status, 200);
}

TEST_F(BalancerTest, one_that_takes_the_place_of_another_gets_its_requests_and_the_other_keeps_those_under_way) {
  const auto streams = [](const std::string& request) {
    if (!request.starts_with("POST ")) return Reply{FakeUpstream::whole(200, "{}")};
    return Reply{FakeUpstream::kEvents + FakeUpstream::chunk("data: 1\n\n"), true};
  };
  start({streams});
  HttpWire wire = streaming();
  wire.until("\r\n\r\n");
  EXPECT_EQ(wire.chunk(), "data: 1\n\n");
  EXPECT_EQ(balancer_->left_open(0), 0) << "nobody has left";
  FakeUpstream next(says(200, R"({"next": 1})"));
  balancer_->begin(0, next.address(), "theirs");
  EXPECT_EQ(balancer_->left_open(0), 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(complete().body, R"({"next": 1})");
  EXPECT_EQ(next.requests(), 3);
  EXPECT_EQ(replicas_[0]->requests(), 1);
  EXPECT_EQ(balancer_->left_open(0), 1) << "answers of the new one are its own";
  wire.hang_up();
  EXPECT_TRUE(replicas_[0]->is_left());
  EXPECT_TRUE(comes_true([&] { return balancer_->left_open(0) == 0; }));
  EXPECT_EQ(balancer_->ready(), 1);
}

TEST_F(BalancerTest, questions_without_an_answer_are_counted) {
  std::atomic<bool> answers = false;
  start({[&](const std::string&) { return Reply{answers ? FakeUpstream::whole(503, "{}") : std::string()}; }});
  for (int asked = 1; asked <= 3; ++asked) {
    balancer_->check_health();
    EXPECT_TRUE(comes_true([&] { return balancer_->unanswered(0) == asked; }));
  }
  EXPECT_EQ(balancer_->ready(), 0);
  answers = true;
  balancer_->check_health();
  EXPECT_TRUE(comes_true([&] { return balancer_->unanswered(0) == 0; })) << "503 is an answer";
  EXPECT_EQ(balancer_->ready(), 0);
  answers = false;
  balancer_->check_health();
  EXPECT_TRUE(comes_true([&] { return balancer_->unanswered(0) == 1; }));
  balancer_->retire(0);
  EXPECT_EQ(balancer_->unanswered(0), 0);
}

TEST_F(BalancerTest, without_a_free_descriptor_no_replica_is_blamed) {
  start({says(200, "{}"), says(200, "{}")});
  HttpWire wire(server_->address());
  ASSERT_TRUE(comes_true([&] { return server_->connections() == 1; }));
  {
    const NoFreeDescriptor none;
    balancer_->check_health();
    wire.say("GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ours\r\n\r\n");
    const std::string answer = wire.answer();  // after the questions, which were sent first
    EXPECT_EQ(status_of(answer), 429) << answer;
    EXPECT_NE(answer.find("cannot make a connection"), answer.npos) << answer;
  }
  EXPECT_EQ(balancer_->unanswered(0) + balancer_->unanswered(1), 0);
  EXPECT_EQ(balancer_->ready(), 2);
  EXPECT_EQ(balancer_->counts().retries, 0);
  EXPECT_EQ(balancer_->counts().failed, 1);
  EXPECT_EQ(complete().status, 200);
}

TEST_F(BalancerTest, a_canary_gets_its_share_and_is_compared) {
  start({says(200, R"({"s": 1})"), says(200, R"({"c": 1})")}, 25);
  balancer_->begin(1, replicas_[1]->address(), "theirs", "new@4");
  std::string whose;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(send("GET", "/v1/models").status, 200);
    const HttpReply reply = complete();
    whose += reply.body.substr(2, 1);
    const std::string* model = reply.header("x-systole-model");
    EXPECT_EQ(model == nullptr ? "" : *model, whose.back() == 'c' ? "new@4" : "");
  }
  EXPECT_EQ(whose, "ssscssscssscssscsssc") << "equal prompts too";
  EXPECT_EQ(replicas_[1]->requests(), 5);
  const std::string text = send("GET", "/metrics").body;
  for (const char* line :
       {"version_requests_total{version=\"stable\"} 35\n", "version_requests_total{version=\"canary\"} 5\n",
        "version_errors_total{version=\"canary\"} 0\n", "replicas_ready 1\n",
        "version_latency_seconds_count{version=\"canary\"} 5\n",
        "version_time_to_first_token_seconds_count{version=\"canary\"} 0\n"})
    EXPECT_NE(text.find(fmt::format("\nsystole:{}", line)), text.npos) << line << text;
}

TEST_F(BalancerTest, a_stable_replica_answers_for_a_canary_that_cannot_but_not_the_other_way) {
  start({says(200, R"({"s": 1})"), says(429, "{}"), writes("")}, 100);
  EXPECT_EQ(complete().status, 200);
  EXPECT_EQ(replicas_[2]->requests(), 1);
  EXPECT_EQ(balancer_->counts().retries, 1);
  const std::string text = send("GET", "/metrics").body;
  EXPECT_NE(text.find("\nsystole:version_errors_total{version=\"canary\"} 1\n"), text.npos) << text;
  EXPECT_EQ(complete().status, 200) << "it is not ready";
  server_.reset();
  replicas_.clear();
  start({says(200, "{}"), says(200, "{}")}, 1);
  balancer_->retire(0);
  EXPECT_EQ(complete().status, 503);
  EXPECT_EQ(balancer_->ready(), 0);
  EXPECT_EQ(send("GET", "/health/ready").status, 503);
  EXPECT_EQ(replicas_[1]->requests(), 0);
}

TEST_F(BalancerTest, a_shadow_is_asked_besides_and_its_answers_are_only_compared) {
  std::atomic<int> asked = 0;
  const auto shadow = [&](const std::string& request) {
    if (!request.starts_with("POST ")) return Reply{FakeUpstream::whole(200, "")};
    EXPECT_TRUE(request.ends_with(kAsked)) << request;
    EXPECT_NE(request.find("Bearer theirs"), std::string::npos) << request;
    switch (asked++) {
      case 0: return Reply{FakeUpstream::whole(200, R"({"id": "b", "text": "All"})")};
      case 1: return Reply{FakeUpstream::whole(200, R"({"id": "b", "text": "None"})")};
      case 2: return Reply{FakeUpstream::whole(429, "{}")};
      default: return Reply{"", true};  // never answered
    }
  };
  start({says(200, R"({"id": "a", "text": "All"})"), shadow}, 0, 50);
  const auto metric = [&](const std::string& line) {
    return comes_true(
        [&] { return send("GET", "/metrics").body.find("\nsystole:" + line + "\n") != std::string::npos; });
  };
  for (const char* counted : {"shadow_same_text_total 1", "shadow_different_text_total 1", "shadow_dropped_total 1"}) {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(json(complete()), "All");
    EXPECT_TRUE(metric(counted)) << send("GET", "/metrics").body;
  }
  EXPECT_EQ(asked, 3) << "every second one";
  EXPECT_TRUE(metric("version_latency_seconds_count{version=\"shadow\"} 2"));
  EXPECT_TRUE(metric("version_requests_total{version=\"stable\"} 6"));
  for (int i = 0; i < 80; ++i) EXPECT_EQ(json(complete()), "All") << "nobody waits for it";
  EXPECT_TRUE(comes_true([&] { return asked == 3 + 32; }));
  EXPECT_TRUE(metric("shadow_dropped_total 9")) << "of 40 more it has 32 under way";
  EXPECT_EQ(balancer_->ready(), 1);
  EXPECT_EQ(balancer_->counts().failed + balancer_->counts().retries, 0);
}

TEST_F(BalancerTest, the_first_piece_of_a_shadows_stream_is_timed_too) {
  const auto streams = [](const std::string& request) {
    if (!request.starts_with("POST ")) return Reply{FakeUpstream::whole(200, "")};
    return Reply{FakeUpstream::kEvents + FakeUpstream::chunk("data: 1\n\n") + FakeUpstream::chunk("data: 2\n\n") +
                 FakeUpstream::chunk("")};
  };
  start({streams, streams}, 0, 100);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(complete().body, "data: 1\n\ndata: 2\n\n");
  for (const char* version : {"stable", "shadow"}) {
    const std::string line =
        fmt::format("\nsystole:version_time_to_first_token_seconds_count{{version=\"{}\"}} 2\n", version);
    EXPECT_TRUE(comes_true([&] { return send("GET", "/metrics").body.find(line) != std::string::npos; })) << line;
  }
}

TEST_F(BalancerTest, metrics_are_those_of_all_that_answer) {
  start({says(200, "# TYPE a gauge\na{m=\"x\"} 1\n"), writes("garbage"), says(200, "a{m=\"x\"} 3\n")});
  const std::string text = send("GET", "/metrics").body;
  EXPECT_TRUE(text.starts_with("# TYPE a gauge\na{m=\"x\",replica=\"0\"} 1\na{m=\"x\",replica=\"2\"} 3\n")) << text;
  EXPECT_NE(text.find("\nsystole:replicas_ready 3\n"), text.npos) << text;
}

}  // namespace
}  // namespace systole
