#include "operate/run/metrics_server.h"

#include <gtest/gtest.h>

#include "ground/net/http_get.h"

namespace systole {
namespace {

struct Served : testing::Test {
  RunMetrics metrics;
  std::unique_ptr<HttpServer> server = serve_metrics("0", metrics).value();

  Result<HttpAnswer> get(const std::string& path) const {
    return http_get({server->address(), path}, {}, deadline_after(Seconds(10.0)));
  }
  // The reply to these bytes, until the connection closes.
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
  const std::string before = metrics.text();
  EXPECT_EQ(get("/metrics")->body, before);
  Event step;
  step.body = StepEnded{.step = 7, .loss = 0.5};
  metrics.see(step);
  EXPECT_NE(metrics.text(), before);
  EXPECT_EQ(get("/metrics?a=b")->body, metrics.text());
  EXPECT_EQ(get("/")->status, 404);
  const std::string head = said_to("HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_NE(head.find("Content-Type: text/plain; version=0.0.4"), head.npos) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
}

TEST_F(Served, what_is_no_request_is_refused_in_plain_text) {
  const std::string posted = said_to("POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(posted.starts_with("HTTP/1.1 405")) << posted;
  EXPECT_TRUE(posted.ends_with("\r\n\r\n/metrics takes GET, HEAD\n")) << posted;
  EXPECT_TRUE(said_to("\x16\x03\x01\r\n\r\n").starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(said_to("\r\n\r\n").starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(said_to("GET /metrics HTTP/1.1\r\nX: " + std::string(9000, 'x')).starts_with("HTTP/1.1 431"));
}

TEST_F(Served, who_says_nothing_keeps_nobody_out) {
  std::vector<Fd> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(connect_to(server->address(), deadline_after(Seconds(10.0))).value());
  EXPECT_EQ(get("/metrics")->status, 200);
}

TEST(MetricsServer, an_address_of_the_whole_machine_needs_no_token) {
  const RunMetrics metrics;
  EXPECT_TRUE(serve_metrics("0.0.0.0:0", metrics).ok());
  EXPECT_EQ(serve_metrics("", metrics).value(), nullptr);
}

}  // namespace
}  // namespace systole
