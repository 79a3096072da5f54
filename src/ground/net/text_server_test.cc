#include "ground/net/text_server.h"

#include <gtest/gtest.h>

#include "ground/net/http_get.h"

namespace systole {
namespace {

struct Served : testing::Test {
  std::unique_ptr<TextServer> server =
      TextServer::start({.text = [this] { return fmt::format("count {}\n", ++count); }}).value();
  int count = 0;

  Result<HttpAnswer> get(const std::string& path) const {
    return http_get({server->address(), path}, {}, deadline_after(Seconds(10.0)));
  }
  // What comes back to these bytes, until it is closed.
  std::string said_to(const std::string& request) const {
    const Fd fd = connect_to(server->address(), deadline_after(Seconds(10.0))).value();
    send_all(fd.get(), std::as_bytes(std::span(request)), deadline_after(Seconds(10.0)), "server").value();
    std::string text;
    for (std::byte one; receive_all(fd.get(), std::span(&one, 1), deadline_after(Seconds(10.0)), "server").ok();)
      text += static_cast<char>(one);
    return text;
  }
};

TEST_F(Served, the_text_is_made_for_each_who_asks) {
  EXPECT_EQ(server->address().host, "127.0.0.1");
  EXPECT_EQ(get("/metrics")->body, "count 1\n");
  EXPECT_EQ(get("/metrics?a=b")->body, "count 2\n");
  EXPECT_EQ(get("/")->status, 404);
  const std::string head = said_to("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(head.find("Content-Type: text/plain; version=0.0.4"), head.npos) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
}

TEST_F(Served, what_is_no_request_is_refused) {
  EXPECT_TRUE(said_to("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
  EXPECT_TRUE(said_to("\x16\x03\x01\r\n\r\n").starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(said_to("\r\n\r\n").starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(said_to("GET /metrics HTTP/1.1\r\nX: " + std::string(9000, 'x')).starts_with("HTTP/1.1 431"));
}

TEST_F(Served, who_says_nothing_keeps_nobody_out) {
  std::vector<Fd> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(connect_to(server->address(), deadline_after(Seconds(10.0))).value());
  EXPECT_EQ(get("/metrics")->body, "count 1\n");
}

}  // namespace
}  // namespace systole
