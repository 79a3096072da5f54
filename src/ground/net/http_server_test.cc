// The server against raw sockets: what it answers, what it bounds, and what it notices.
#include "ground/net/http_server.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <condition_variable>
#include <deque>
#include <fstream>
#include <mutex>
#include <thread>

#include "ground/base/document.h"
#include "ground/net/http_client.h"
#include "ground/net/testing/http_wire.h"

namespace systole {
namespace {

using std::chrono::steady_clock;

// True once `holds` does; false: not within 20 s.
bool comes_true(const std::function<bool()>& holds) {
  for (const auto until = steady_clock::now() + std::chrono::seconds(20); steady_clock::now() < until;) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return holds();
}

class HttpServing : public testing::Test {
 protected:
  void start(HttpServerOptions options = {}) {
    const auto add = [&](const char* method, const char* pattern, HttpHandler handler, bool needs_token = true) {
      options.routes.push_back({method, pattern, std::move(handler), needs_token});
    };
    add("GET", "/hello",
        [](const HttpServerRequest&, HttpResponder to) { to.send({.type = "text/plain", .body = "hello"}); });
    add("POST", "/echo",
        [](HttpServerRequest request, HttpResponder to) { to.send({.body = std::move(request.body)}); });
    add("GET", "/models/{model*}",
        [](const HttpServerRequest& request, HttpResponder to) { to.send({.body = request.parameter("model")}); });
    add(
        "GET", "/health", [](const HttpServerRequest&, HttpResponder to) { to.send({.body = "{}"}); }, false);
    add("GET", "/later", [this](const HttpServerRequest&, HttpResponder to) { keep(std::move(to)); });
    add("POST", "/later", [this](const HttpServerRequest&, HttpResponder to) { keep(std::move(to)); });
    add("GET", "/stream", [this](const HttpServerRequest&, HttpResponder to) {
      to.begin({.type = "text/event-stream"});
      keep(std::move(to));
    });
    add("GET", "/drops", [](const HttpServerRequest&, HttpResponder) {});
    add("GET", "/throws",
        [](const HttpServerRequest&, HttpResponder) { fail(error(ErrorKind::internal, "a wire is loose")); });
    add("GET", "/injects", [](const HttpServerRequest&, HttpResponder to) {
      to.send({.headers = {{"X-A", "b\r\nSet-Cookie: c"}}});
    });
    options.access = [this](const HttpAccess& access) {
      const std::lock_guard lock(mutex_);
      accesses_.push_back(access);
    };
    server_ = HttpServer::start(std::move(options)).value();
  }
  HttpWire wire() const { return HttpWire(server_->address()); }
  // The answer to what these bytes ask.
  std::string answer_to(std::string_view text) const {
    HttpWire asks = wire();
    asks.say(text);
    return asks.answer();
  }
  int status_for(std::string_view text) const { return status_of(answer_to(text)); }
  static std::string get(std::string_view path, std::string_view more = "") {
    return fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n{}\r\n", path, more);
  }
  static std::string post(std::string_view path, std::string_view body, std::string_view more = "") {
    return fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{}\r\n{}", path, body.size(), more, body);
  }
  static std::string body_of(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == answer.npos ? "" : answer.substr(end + 4);
  }
  void keep(HttpResponder responder) {
    {
      const std::lock_guard lock(mutex_);
      kept_.push_back(std::move(responder));
    }
    more_.notify_all();
  }
  // The next responder that a handler kept.
  HttpResponder kept() {
    std::unique_lock lock(mutex_);
    CHECK(more_.wait_for(lock, std::chrono::seconds(20), [&] { return !kept_.empty(); }), "no request came");
    HttpResponder first = std::move(kept_.front());
    kept_.pop_front();
    return first;
  }
  std::vector<HttpAccess> accesses(std::size_t at_least) {
    comes_true([&] {
      const std::lock_guard lock(mutex_);
      return accesses_.size() >= at_least;
    });
    const std::lock_guard lock(mutex_);
    return accesses_;
  }

  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<HttpResponder> kept_;
  std::vector<HttpAccess> accesses_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServing, a_request_gets_its_answer_and_the_connection_goes_on) {
  start();
  EXPECT_EQ(server_->address().host, "127.0.0.1");
  HttpWire one = wire();
  one.say(get("/hello?a=b"));
  const std::string hello = one.answer();
  EXPECT_TRUE(hello.starts_with("HTTP/1.1 200 OK\r\nDate: ")) << hello;
  for (const char* part : {" GMT\r\n", "\r\nServer: systole\r\n", "\r\nX-Request-Id: req_",
                           "\r\nContent-Type: text/plain\r\n", "\r\nContent-Length: 5\r\n"})
    EXPECT_NE(hello.find(part), hello.npos) << part << hello;
  EXPECT_EQ(body_of(hello), "hello");
  one.say(post("/echo", "{\"a\": 1}"));
  EXPECT_EQ(body_of(one.answer()), "{\"a\": 1}");
  one.say(get("/models/a/b%20c"));
  EXPECT_EQ(body_of(one.answer()), "a/b c");
  one.say("HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string head = one.answer(false);
  EXPECT_NE(head.find("Content-Length: 5\r\n"), head.npos) << head;
  one.say(get("/nothing"));
  EXPECT_EQ(status_of(one.answer()), 404) << "and nothing of the body of HEAD's answer came before";
  one.say(get("/hello", "Connection: close\r\n"));
  EXPECT_NE(one.answer().find("\r\nConnection: close\r\n"), std::string::npos);
  EXPECT_TRUE(one.is_closed());
  const std::unique_ptr<HttpClient> client = HttpClient::open({}).value();
  const std::string large(3 << 20, 'x');
  const std::string url = fmt::format("http://{}/echo", to_string(server_->address()));
  EXPECT_EQ(client->send({.method = "POST", .url = url, .body = large}).value().body, large);
}

TEST_F(HttpServing, who_asks_whether_to_send_a_body_is_told) {
  start({.limits = {.body = Bytes(10)}});
  HttpWire asks = wire();
  asks.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(asks.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  asks.say("hello");
  EXPECT_EQ(body_of(asks.answer()), "hello");
  asks.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(status_of(asks.answer()), 413);
}

TEST_F(HttpServing, each_refusal_has_its_status_and_says_why) {
  start({.limits = {.head = {.target = 100, .head = 2000, .headers = 10}, .body = Bytes(1000)}});
  const std::string host = " HTTP/1.1\r\nHost: x\r\n";
  const std::pair<std::string, int> asked[] = {
      {"\x16\x03\x01\x02", 400},  // TLS
      {"hello\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {get("/hello", "X: \xff\xfe\r\n"), 400},
      {get("/models/%ff"), 404},
      {get("/nothing"), 404},
      {"DELETE /hello" + host + "\r\n", 405},
      {"POST /echo" + host + "\r\n", 411},
      {"POST /echo" + host + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 411},
      {"POST /echo" + host + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {post("/echo", std::string(1001, 'x')), 413},
      {"POST /echo" + host + "Content-Length: 99999999999999999999\r\n\r\n", 413},
      {get("/" + std::string(100, 'x')), 414},
      {"GET /" + std::string(3000, 'x'), 414},
      {get("/hello", "X: " + std::string(2000, 'x') + "\r\n"), 431},
      {"GET / HTTP/1.1\r\nX: " + std::string(100'000, 'x'), 431},
      {get("/hello", "A:\r\nB:\r\nC:\r\nD:\r\nE:\r\nF:\r\nG:\r\nH:\r\nI:\r\nJ:\r\n"), 431},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {post("/echo", std::string(1000, 'x')), 200},
  };
  for (const auto& [text, status] : asked) {
    const std::string answer = answer_to(text);
    EXPECT_EQ(status_of(answer), status) << text.substr(0, 80) << "\n" << answer;
    if (status == 200) continue;
    const Result<Node> body = parse_json(body_of(answer), "answer");
    ASSERT_TRUE(body.ok()) << answer;
    const Node* why = body->find("error");
    ASSERT_NE(why, nullptr) << answer;
    for (const char* key : {"message", "type", "param", "code"}) EXPECT_NE(why->find(key), nullptr) << key << answer;
  }
  EXPECT_NE(answer_to("PUT /later" + host + "\r\n").find("\r\nAllow: GET, HEAD, POST\r\n"), std::string::npos);
}

TEST_F(HttpServing, errors_have_the_shape_that_is_asked_for) {
  start({.error = [](const HttpFault& fault) {
    return HttpResponse{.status = fault.status, .type = "text/html", .body = "<p>" + fault.message};
  }});
  const std::string answer = answer_to(get("/nothing"));
  EXPECT_EQ(body_of(answer), "<p>there is no /nothing");
  EXPECT_NE(answer.find("Content-Type: text/html\r\n"), answer.npos) << answer;
}

TEST_F(HttpServing, who_is_slow_is_told_and_closed) {
  start({.limits = {.head_time = Seconds(1.0), .body_time = Seconds(1.0), .idle_time = Seconds(1.0)}});
  HttpWire silent = wire(), drips = wire(), body = wire(), idle = wire();
  body.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
  idle.say(get("/hello"));
  EXPECT_EQ(status_of(idle.answer()), 200);
  // Each byte comes in time, but all of them do not.
  std::jthread slow([&](const std::stop_token& stop) {
    const std::string request = "GET /hello HTTP/1.1\r\nHost: x\r\nA: " + std::string(500, 'a');
    for (std::size_t i = 0; i < request.size() && !stop.stop_requested(); ++i) {
      (void)drips.say(request.substr(i, 1));
      (void)body.say("x");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  EXPECT_TRUE(comes_true([&] { return accesses(0).size() >= 3; }));
  slow = {};
  EXPECT_EQ(status_of(drips.answer()), 408);
  EXPECT_EQ(status_of(body.answer()), 408);
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(idle.is_closed());
}

TEST_F(HttpServing, a_later_answer_comes_from_any_thread_and_only_once) {
  start();
  HttpWire one = wire();
  one.say(get("/later"));
  HttpResponder responder = kept();
  std::thread([&] {
    responder.send({.body = "first"});
    responder.send({.body = "second"});
  }).join();
  EXPECT_EQ(body_of(one.answer()), "first");
  one.say(get("/hello"));
  EXPECT_EQ(body_of(one.answer()), "hello");
  EXPECT_EQ(responder.write("x"), StreamWrite::gone);
  bool left = false;
  responder.when_gone([&] { left = true; });
  one.hang_up();
  EXPECT_TRUE(comes_true([&] { return server_->connections() == 0; }));
  EXPECT_FALSE(left) << "it had its answer";
}

TEST_F(HttpServing, a_stream_arrives_piece_by_piece) {
  start();
  HttpWire reader = wire();
  reader.say(get("/stream"));
  HttpResponder stream = kept();
  EXPECT_NE(reader.until("\r\n\r\n").find("Content-Type: text/event-stream\r\n"), std::string::npos);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(stream.write(fmt::format("data: {}\n\n", i)), StreamWrite::taken);
    EXPECT_EQ(reader.chunk(), fmt::format("data: {}\n\n", i));
  }
  EXPECT_TRUE(comes_true([&] { return stream.buffered() == 0; }));
  std::vector<std::jthread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      for (int n = 0; n < 100; ++n) EXPECT_EQ(stream.write("data: whole\n\n"), StreamWrite::taken);
    });
  writers.clear();
  stream.end();
  std::string all, every;
  for (std::string piece = reader.chunk(); !piece.empty(); piece = reader.chunk()) all += piece;
  for (int i = 0; i < 400; ++i) every += "data: whole\n\n";
  EXPECT_EQ(all, every);
  reader.say(get("/hello"));
  EXPECT_EQ(body_of(reader.answer()), "hello") << "the connection goes on";
}

TEST_F(HttpServing, streams_of_those_who_know_no_chunks_or_want_no_body) {
  start();
  HttpWire old = wire(), head = wire();
  old.say("GET /stream HTTP/1.0\r\n\r\n");
  HttpResponder stream = kept();
  stream.write("a");
  stream.write("b");
  stream.end();
  EXPECT_EQ(body_of(old.rest()), "ab");
  head.say("HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(kept().write("a"), StreamWrite::gone);
  EXPECT_EQ(status_of(head.answer(false)), 200);
  head.say(get("/hello"));
  EXPECT_EQ(body_of(head.answer()), "hello");
}

TEST_F(HttpServing, a_lost_client_is_noticed_before_anything_is_written) {
  start();
  std::vector<HttpWire> readers;
  std::vector<HttpResponder> answers;
  std::atomic<int> left = 0;
  for (const char* path : {"/stream", "/later", "/stream"}) {
    readers.push_back(wire());
    readers.back().say(get(path));
    answers.push_back(kept());
    answers.back().when_gone([&] { ++left; });
  }
  EXPECT_FALSE(answers[0].is_gone());
  readers[0].hang_up();
  readers[1].hang_up();
  readers[2].end_saying();  // half-open: that has left, too
  EXPECT_TRUE(comes_true([&] { return left == 3; }));
  for (HttpResponder& answer : answers) {
    EXPECT_TRUE(answer.is_gone());
    answer.send({.body = "for nobody"});
  }
  EXPECT_EQ(answers[0].write("for nobody"), StreamWrite::gone);
  answers[0].when_gone([&] { ++left; });
  EXPECT_EQ(left, 4) << "who asks later hears at once";
  for (const HttpAccess& access : accesses(3)) EXPECT_TRUE(access.gone);
  server_.reset();
  EXPECT_EQ(answers[2].write("for nobody"), StreamWrite::gone) << "a responder outlives the server";
}

TEST_F(HttpServing, a_half_request_is_no_request) {
  start();
  HttpWire half = wire(), body = wire();
  half.say("GET /hello HTTP/1.1\r\nHo");
  body.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  half.end_saying();
  body.end_saying();
  EXPECT_TRUE(half.is_closed());
  EXPECT_TRUE(body.is_closed());
  HttpWire whole = wire();
  whole.say(get("/hello") + get("/hello"));
  whole.end_saying();
  EXPECT_EQ(body_of(whole.answer()), "hello") << "what was asked before the end is answered";
  EXPECT_EQ(body_of(whole.answer()), "hello");
  EXPECT_TRUE(whole.is_closed());
}

TEST_F(HttpServing, a_slow_reader_fills_its_own_buffer_alone) {
  start({.limits = {.stream_buffer = kKiB * 256, .write_time = Seconds(2.0)}});
  HttpWire slow = wire();
  slow.say(get("/stream"));
  HttpResponder stream = kept();
  const std::string piece(16 << 10, 'x');
  StreamWrite last = StreamWrite::taken;
  std::size_t most = 0;
  EXPECT_TRUE(comes_true([&] {
    last = stream.write(piece);
    most = std::max(most, stream.buffered());
    return last != StreamWrite::taken;
  }));
  EXPECT_EQ(last, StreamWrite::full);
  EXPECT_LE(most, std::size_t{257} << 10) << "with the frames of its chunks";
  EXPECT_EQ(body_of(answer_to(get("/hello"))), "hello") << "nobody else waits";
  EXPECT_TRUE(comes_true([&] { return stream.is_gone(); })) << "who takes nothing for long is given up";
  EXPECT_EQ(stream.write("x"), StreamWrite::gone);
}

TEST_F(HttpServing, who_reads_on_has_room_again) {
  start({.limits = {.stream_buffer = kKiB * 64}});
  HttpWire reader = wire();
  reader.say(get("/stream"));
  HttpResponder stream = kept();
  const std::string piece(16 << 10, 'x');
  std::size_t sent = 0;
  while (stream.write(piece) == StreamWrite::taken) sent += piece.size();
  std::jthread reads([&] { EXPECT_EQ(body_of(reader.answer()).size(), sent + piece.size()); });
  EXPECT_TRUE(comes_true([&] { return stream.write(piece) == StreamWrite::taken; }));
  stream.end();
}

TEST_F(HttpServing, pipelined_requests_are_answered_in_turn) {
  start();
  HttpWire one = wire();
  std::string many = get("/later");
  for (int i = 0; i < 300; ++i) many += post("/echo", std::to_string(i));
  one.say(many);
  HttpResponder first = kept();
  first.send({.body = "later"});
  EXPECT_EQ(body_of(one.answer()), "later");
  for (int i = 0; i < 300; ++i) ASSERT_EQ(body_of(one.answer()), std::to_string(i));
}

TEST_F(HttpServing, what_waits_behind_a_stream_costs_nothing) {
  start();
  HttpWire one = wire();
  one.say(get("/later"));
  HttpResponder first = kept();
  const std::string body(4000, 'x');
  std::jthread says([&] {
    for (int i = 0; i < 300 && one.say(post("/echo", body));) ++i;  // more than is read ahead
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto used = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return Seconds(static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                   1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec));
  };
  const Seconds before = used();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_LT(used() - before, Seconds(0.5)) << "the server spins";
  first.send({.body = "later"});
  EXPECT_EQ(body_of(one.answer()), "later");
  for (int i = 0; i < 300; ++i) ASSERT_EQ(body_of(one.answer()), body);
}

TEST_F(HttpServing, who_never_reads_is_not_answered_without_end) {
  start();
  HttpWire greedy = wire();
  const std::string body(60'000, 'x');
  std::size_t said = 0;
  // Each answer has to leave before the next request is looked at, so that this ends when the buffers are full.
  const std::string request = post("/echo", body);
  while (said < (std::size_t{64} << 20)) {
    const ssize_t some = ::send(greedy.fd(), request.data() + said % request.size(),
                                request.size() - said % request.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (some > 0) said += static_cast<std::size_t>(some);
    if (some < 0 && !wait_for(greedy.fd(), POLLOUT, deadline_after(Seconds(1.0)))) break;
  }
  EXPECT_LT(said, std::size_t{64} << 20);
  EXPECT_EQ(body_of(answer_to(get("/hello"))), "hello");
}

TEST_F(HttpServing, a_token_is_needed_and_every_one_of_them_serves) {
  start({.tokens = {"one-token", "another"}});
  const auto with = [](const char* shown) { return get("/hello", fmt::format("Authorization: {}\r\n", shown)); };
  EXPECT_EQ(status_for(with("Bearer one-token")), 200);
  EXPECT_EQ(status_for(with("bearer another")), 200);
  for (const char* wrong : {"Bearer one-toke", "Bearer one-tokenx", "Bearer", "Bearer  one-token", "Basic one-token",
                            "one-token", "Bearer one-token, Bearer another"})
    EXPECT_EQ(status_for(with(wrong)), 401) << wrong;
  const std::string refused = answer_to(get("/hello"));
  EXPECT_EQ(status_of(refused), 401);
  EXPECT_NE(refused.find("\r\nWWW-Authenticate: Bearer\r\n"), refused.npos) << refused;
  EXPECT_NE(refused.find("invalid_api_key"), refused.npos) << refused;
  EXPECT_EQ(status_for(get("/nothing")), 401) << "what there is, is told to nobody else";
  EXPECT_EQ(status_for(post("/echo", "x")), 401);
  EXPECT_EQ(status_for(get("/health")), 200);
}

TEST(HttpServerStart, other_machines_need_a_token) {
  const HttpHandler handler = [](const HttpServerRequest&, HttpResponder to) { to.send({}); };
  const auto started = [&](const std::string& host, std::vector<std::string> tokens, bool needs_token = true) {
    return HttpServer::start(
        {.bind = {host, 0}, .routes = {{"GET", "/", handler, needs_token}}, .tokens = std::move(tokens)});
  };
  EXPECT_EQ(started("0.0.0.0", {}).error().kind, ErrorKind::invalid);
  EXPECT_TRUE(started("0.0.0.0", {"token"}).ok());
  EXPECT_TRUE(started("0.0.0.0", {}, false).ok());
  EXPECT_TRUE(started("127.0.0.1", {}).ok());
  EXPECT_EQ(started("127.0.0.1", {""}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(started("systole.invalid", {"token"}).error().kind, ErrorKind::not_found);
  const ListeningSocket held = listen_on({}).value();
  EXPECT_EQ(HttpServer::start({.bind = {"127.0.0.1", held.port}}).error().kind, ErrorKind::busy);
}

TEST_F(HttpServing, a_handler_that_fails_answers_500) {
  start();
  for (const char* path : {"/drops", "/throws", "/injects"}) {
    const std::string answer = answer_to(get(path));
    EXPECT_EQ(status_of(answer), 500) << path;
    EXPECT_EQ(answer.find("loose"), answer.npos) << "what went wrong is not for strangers";
    EXPECT_EQ(answer.find("Set-Cookie"), answer.npos) << answer;
  }
  const std::vector<HttpAccess> told = accesses(3);
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].failure, "the handler gave no answer");
  EXPECT_NE(told[1].failure.find("a wire is loose"), std::string::npos) << told[1].failure;
  HttpWire cut = wire();
  cut.say(get("/stream"));
  {
    HttpResponder stream = kept();
    stream.write("some");
    EXPECT_NE(cut.until("\r\n\r\n"), "");
    EXPECT_EQ(cut.chunk(), "some");
  }
  EXPECT_EQ(cut.rest(), "") << "without the chunk that ends a stream";
}

TEST_F(HttpServing, each_request_is_told_without_what_it_holds) {
  start();
  answer_to(post("/echo?secret=query", "secret body", "X-Secret: header\r\nX-Request-Id: mine-1\r\n"));
  answer_to(get("/hello", "X-Request-Id: not one\r\n"));
  answer_to("nonsense\r\n\r\n");
  const std::vector<HttpAccess> told = accesses(3);
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].method, "POST");
  EXPECT_EQ(told[0].path, "/echo");
  EXPECT_EQ(told[0].status, 200);
  EXPECT_EQ(told[0].sent, Bytes(11));
  EXPECT_EQ(told[0].id, "mine-1");
  EXPECT_EQ(told[0].peer, "127.0.0.1");
  EXPECT_FALSE(told[0].gone);
  EXPECT_GE(told[0].time, Seconds(0.0));
  EXPECT_TRUE(told[1].id.starts_with("req_")) << told[1].id;
  EXPECT_EQ(told[2].status, 400);
  EXPECT_EQ(told[2].path, "");
}

TEST_F(HttpServing, connections_are_limited_and_the_idle_ones_yield) {
  start({.limits = {.connections = 3}});
  std::vector<HttpWire> busy, silent;
  for (int i = 0; i < 5; ++i) silent.push_back(wire());
  std::vector<HttpResponder> streams;
  for (int i = 0; i < 3; ++i) {
    busy.push_back(wire());
    busy.back().say(get("/stream"));
    streams.push_back(kept());
  }
  for (HttpWire& one : silent) EXPECT_TRUE(one.is_closed());
  const std::string refused = answer_to(get("/hello"));
  EXPECT_EQ(status_of(refused), 503);
  EXPECT_NE(refused.find("\r\nRetry-After: "), refused.npos) << refused;
  for (HttpResponder& stream : streams) EXPECT_EQ(stream.write("x"), StreamWrite::taken) << "they are not disturbed";
  streams[0].end();
  EXPECT_NE(busy[0].answer(), "");
  EXPECT_EQ(status_for(get("/hello")), 200);
}

TEST_F(HttpServing, bodies_are_limited_together) {
  start({.limits = {.body = kKiB * 64, .bodies = kKiB * 100}});
  HttpWire first = wire();
  first.say(post("/later", std::string(64 << 10, 'x')));
  HttpResponder responder = kept();
  EXPECT_EQ(status_for(post("/echo", std::string(64 << 10, 'x'))), 503);
  responder.send({});
  EXPECT_EQ(status_of(first.answer()), 200);
  EXPECT_TRUE(comes_true([&] { return status_for(post("/echo", std::string(64 << 10, 'x'))) == 200; }));
}

TEST_F(HttpServing, draining_ends_what_is_idle_and_lets_end_what_is_begun) {
  start();
  HttpWire idle = wire(), reader = wire();
  idle.say(get("/hello"));
  EXPECT_EQ(body_of(idle.answer()), "hello");
  reader.say(get("/stream"));
  HttpResponder stream = kept();
  EXPECT_FALSE(server_->drain(deadline_after(Seconds(0.2)))) << "a stream is open";
  EXPECT_TRUE(idle.is_closed());
  EXPECT_FALSE(connect_to(server_->address(), deadline_after(Seconds(0.2))).ok());
  EXPECT_EQ(stream.write("last words"), StreamWrite::taken);
  stream.end();
  EXPECT_EQ(body_of(reader.answer()), "last words");
  EXPECT_TRUE(reader.is_closed());
  EXPECT_TRUE(server_->drain(deadline_after(Seconds(20.0))));
}

TEST_F(HttpServing, the_end_of_the_server_ends_everything) {
  start();
  HttpWire reader = wire(), half = wire(), waits = wire();
  reader.say(get("/stream"));
  HttpResponder stream = kept();
  waits.say(get("/later"));
  HttpResponder later = kept();
  half.say("GET /he");
  bool left = false;
  stream.when_gone([&] { left = true; });
  const auto began = steady_clock::now();
  server_.reset();
  EXPECT_LT(steady_clock::now() - began, std::chrono::seconds(5));
  EXPECT_TRUE(left);
  EXPECT_TRUE(half.is_closed());
  EXPECT_TRUE(waits.is_closed());
  later.send({.body = "for nobody"});
  EXPECT_EQ(stream.write("x"), StreamWrite::gone);
}

// Resident memory of this process, from the kernel.
std::int64_t resident_bytes() {
  std::int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST_F(HttpServing, a_thousand_open_streams_cost_little) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const rlimit before = files;
  files.rlim_cur = std::max<rlim_t>(files.rlim_cur, std::min<rlim_t>(files.rlim_max, 2200));
  ::setrlimit(RLIMIT_NOFILE, &files);
  const std::size_t count = std::min<std::size_t>(1000, (files.rlim_cur - 200) / 2);  // both ends are files here
  start();
  ::malloc_trim(0);
  const std::int64_t without = resident_bytes();
  std::vector<HttpWire> readers;
  std::vector<HttpResponder> streams;
  for (std::size_t i = 0; i < count; ++i) {
    readers.push_back(wire());
    readers.back().say(get("/stream"));
    streams.push_back(kept());
  }
  for (HttpResponder& stream : streams) EXPECT_EQ(stream.write("data: 1\n\n"), StreamWrite::taken);
  for (HttpWire& reader : readers) {
    ASSERT_NE(reader.until("\r\n\r\n"), "");
    ASSERT_EQ(reader.chunk(), "data: 1\n\n");
  }
  EXPECT_EQ(server_->connections(), count);
  EXPECT_LE(resident_bytes() - without, std::int64_t{64} << 20);
  EXPECT_EQ(body_of(answer_to(get("/hello"))), "hello");
  for (HttpResponder& stream : streams) stream.end();
  for (HttpWire& reader : readers) ASSERT_EQ(reader.chunk(), "");
  readers.clear();
  EXPECT_TRUE(comes_true([&] { return server_->connections() == 0; }));
  server_.reset();
  ::setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace systole
