#include "ground/net/http_upstreams.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "ground/net/testing/fake_upstream.h"
#include "ground/net/testing/no_free_descriptor.h"

namespace systole {
namespace {

class Heard : public HttpReplySink {
 public:
  void begin(const HttpReplyHead& head) override {
    const std::lock_guard lock(mutex_);
    status_ = head.status;
  }
  Status take(std::string piece) override {
    const std::lock_guard lock(mutex_);
    body_ += piece;
    changed_.notify_all();
    if (body_ == refused_) return error(ErrorKind::io, "no more");
    return {};
  }
  void end(const Status& how) override {
    const std::lock_guard lock(mutex_);
    if (!how.ok()) kind_ = how.error().kind;
    ends_.push_back(how.ok() ? "whole" : how.error().message);
    changed_.notify_all();
  }
  // "whole", or what failed; "" if it does not end.
  std::string wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return !ends_.empty(); });
    return ends_.empty() ? "" : ends_.front();
  }
  bool wait_for(const std::string& body) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return body_ == body; });
  }
  int status() const { return status_; }
  const std::string& body() const { return body_; }
  std::optional<ErrorKind> kind() const { return kind_; }
  std::size_t ends() const { return ends_.size(); }
  void refuse(const std::string& body) { refused_ = body; }  // REQUIRES: nothing was sent

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int status_ = 0;
  std::optional<ErrorKind> kind_;
  std::string body_, refused_;
  std::vector<std::string> ends_;
};

TEST(HttpUpstreams, sends_a_request_and_gives_its_reply) {
  std::string asked;
  FakeUpstream upstream([&](const std::string& request) {
    asked = request;
    return FakeUpstream::Reply{FakeUpstream::whole(201, "{}")};
  });
  const auto upstreams = HttpUpstreams::start().value();
  const auto heard = std::make_shared<Heard>();
  upstreams->send({.to = upstream.address(),
                   .method = "POST",
                   .target = "/a?b=c",
                   .headers = {{"X-A", "b"}},
                   .body = std::make_shared<const std::string>("hello")},
                  heard);
  EXPECT_EQ(heard->wait(), "whole");
  EXPECT_EQ(heard->status(), 201);
  EXPECT_EQ(heard->body(), "{}");
  EXPECT_TRUE(asked.starts_with("POST /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:")) << asked;
  EXPECT_NE(asked.find("\r\nX-A: b\r\n"), asked.npos) << asked;
  EXPECT_TRUE(asked.ends_with("Content-Length: 5\r\n\r\nhello")) << asked;
}

TEST(HttpUpstreams, a_stream_comes_piece_by_piece_and_cancelling_it_closes_the_connection) {
  FakeUpstream upstream([](const std::string&) {
    return FakeUpstream::Reply{FakeUpstream::kEvents + FakeUpstream::chunk("data: 1\n\n"), true};
  });
  const auto upstreams = HttpUpstreams::start().value();
  const auto heard = std::make_shared<Heard>();
  const std::uint64_t request = upstreams->send({.to = upstream.address()}, heard);
  EXPECT_TRUE(heard->wait_for("data: 1\n\n")) << "before the stream has ended";
  upstreams->cancel(request);
  EXPECT_TRUE(upstream.is_left());
  upstreams->cancel(request);
  EXPECT_EQ(heard->ends(), 0U) << "whoever cancels hears no more";
}

TEST(HttpUpstreams, who_wants_no_more_ends_it) {
  FakeUpstream upstream([](const std::string&) {
    return FakeUpstream::Reply{FakeUpstream::kEvents + FakeUpstream::chunk("data: 1\n\n"), true};
  });
  const auto upstreams = HttpUpstreams::start().value();
  const auto heard = std::make_shared<Heard>();
  heard->refuse("data: 1\n\n");
  upstreams->send({.to = upstream.address()}, heard);
  EXPECT_EQ(heard->wait(), "no more");
  EXPECT_TRUE(upstream.is_left());
}

TEST(HttpUpstreams, what_is_no_whole_reply_fails_once) {
  const std::string garbage = "\x16\x03\x01 garbage\r\n\r\n", half_head = "HTTP/1.1 200 OK\r\nContent-Le";
  const std::string half_body = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", endless(1 << 20, 'x');
  for (const std::string& text : {garbage, half_head, half_body, endless, std::string()}) {
    FakeUpstream upstream([&](const std::string&) { return FakeUpstream::Reply{text}; });
    const auto upstreams = HttpUpstreams::start().value();
    const auto heard = std::make_shared<Heard>();
    upstreams->send({.to = upstream.address()}, heard);
    const std::string end = heard->wait();
    EXPECT_NE(end, "whole") << text.substr(0, 40);
    EXPECT_NE(end, "") << text.substr(0, 40);
    EXPECT_EQ(heard->ends(), 1U);
  }
}

TEST(HttpUpstreams, nobody_there_and_nobody_who_answers) {
  const auto upstreams = HttpUpstreams::start().value();
  const auto absent = std::make_shared<Heard>(), unnamed = std::make_shared<Heard>();
  upstreams->send({.to = {"127.0.0.1", free_port().value()}}, absent);
  EXPECT_EQ(absent->wait(), "cannot get the reply: Connection refused")
      << "without the address, which is not for clients";
  EXPECT_EQ(absent->kind(), ErrorKind::io);
  upstreams->send({.to = {"localhost", 80}}, unnamed);
  EXPECT_NE(unnamed->wait().find("no numeric address"), std::string::npos);
  FakeUpstream silent([](const std::string&) { return FakeUpstream::Reply{"", true}; });
  const auto heard = std::make_shared<Heard>();
  upstreams->send({.to = silent.address(), .timeout = Seconds(0.05)}, heard);
  EXPECT_NE(heard->wait().find("in time"), std::string::npos);
  EXPECT_TRUE(silent.is_left());
}

TEST(HttpUpstreams, without_a_free_descriptor_the_fault_is_not_the_servers) {
  const auto upstreams = HttpUpstreams::start().value();
  const auto heard = std::make_shared<Heard>();
  {
    const NoFreeDescriptor none;
    upstreams->send({.to = {"127.0.0.1", 9}}, heard);
    EXPECT_NE(heard->wait(), "");
  }
  EXPECT_EQ(heard->kind(), ErrorKind::busy);
}

TEST(HttpUpstreams, ends_with_requests_under_way) {
  FakeUpstream silent([](const std::string&) { return FakeUpstream::Reply{"", true}; });
  const auto heard = std::make_shared<Heard>();
  {
    const auto upstreams = HttpUpstreams::start().value();
    for (int i = 0; i < 20; ++i) upstreams->send({.to = silent.address()}, heard);
  }
  EXPECT_EQ(heard->ends(), 0U);
  EXPECT_EQ(heard.use_count(), 1) << "no request holds its sink";
}

}  // namespace
}  // namespace systole
