#include "ground/net/http_request_head.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

HttpRequestHead parsed(const std::string& text) {
  return std::get<HttpRequestHead>(parse_request_head(text + "\r\n\r\n", {}));
}
// 0: no fault.
int fault(const std::string& text, const HttpHeadLimits& limits = {}) {
  const std::variant<HttpRequestHead, HttpFault> result = parse_request_head(text + "\r\n\r\n", limits);
  return std::holds_alternative<HttpFault>(result) ? std::get<HttpFault>(result).status : 0;
}

TEST(HttpRequestHead, has_its_line_and_its_fields) {
  const HttpRequestHead head =
      parsed("POST /v1/chat?a=b%20c HTTP/1.1\r\nHost: x\r\nContent-LENGTH: 12\r\nX-A: \t b c \r\nExpect: 100-Continue");
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/v1/chat");
  EXPECT_EQ(head.query, "a=b%20c");
  EXPECT_EQ(head.length, 12u);
  EXPECT_EQ(*head.header("x-a"), "b c");
  EXPECT_TRUE(head.expects_continue);
  EXPECT_TRUE(head.keeps_alive);
  EXPECT_FALSE(head.is_1_0);
  EXPECT_EQ(parsed("GET http://h:1/a?b HTTP/1.1\r\nHost: h:1").path, "/a");
  EXPECT_FALSE(parsed("GET / HTTP/1.1\r\nHost: x\r\nConnection: a, Close").keeps_alive);
  EXPECT_FALSE(parsed("GET / HTTP/1.1\r\nHost: x\r\nConnection: a\r\nConnection: close").keeps_alive);
  EXPECT_FALSE(parsed("GET / HTTP/1.0").keeps_alive);
  EXPECT_TRUE(parsed("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked").has_coding);
  EXPECT_EQ(*parsed("GET / HTTP/1.1\r\nHost: x\r\nX-A: gr\xc3\xbc\xc3\x9f").header("x-a"), "gr\xc3\xbc\xc3\x9f");
}

TEST(HttpRequestHead, is_read_in_one_way_or_refused) {
  const std::string begin = "GET / HTTP/1.1\r\nHost: x\r\n";
  EXPECT_EQ(fault(begin + "X: y"), 0);
  for (const char* wrong :
       {"X : y", " X: y", "X: a\r\n folded", "X", ": y", "X: a\rb", "X: a\nY: b", "X\x01: a", "X: \x7f", "X: \xff",
        "Host: y", "Content-Length: 1\r\nContent-Length: 1", "Content-Length: +1", "Content-Length: 1, 1",
        "Content-Length:", "Content-Length: -1", "Content-Length: 1\r\nTransfer-Encoding: chunked"})
    EXPECT_EQ(fault(begin + wrong), 400) << wrong;
  for (const char* wrong : {"", "GET", "GET /", "GET  HTTP/1.1", "GET / HTTP", "GET / x HTTP/1.1", "G@T / HTTP/1.1",
                            "GET x HTTP/1.1", "GET /\xc3\xa4 HTTP/1.1", "GET /\x01 HTTP/1.1", "GET * HTTP/1.1"})
    EXPECT_EQ(fault(std::string(wrong) + "\r\nHost: x"), 400) << wrong;
  EXPECT_EQ(fault("GET / HTTP/1.1"), 400) << "no host";
  EXPECT_EQ(fault("GET / HTTP/2.0\r\nHost: x"), 505);
  EXPECT_EQ(fault("GET / HTTP/1.1\nHost: x\n"), 400);
  EXPECT_EQ(fault(begin + "X: y\r\n\r\nmore"), 400);
  EXPECT_TRUE(std::holds_alternative<HttpFault>(parse_request_head("GET / HTTP/1.1\r\nHost: x\r\n", {})));
  EXPECT_EQ(parsed(begin + "Content-Length: 99999999999999999999999").length, ~std::uint64_t{0});
}

TEST(HttpRequestHead, has_limits) {
  const std::string begin = "GET / HTTP/1.1\r\nHost: x";
  EXPECT_EQ(fault("GET /" + std::string(9, 'a') + " HTTP/1.1\r\nHost: x", {.target = 10}), 0);
  EXPECT_EQ(fault("GET /" + std::string(10, 'a') + " HTTP/1.1\r\nHost: x", {.target = 10}), 414);
  EXPECT_EQ(fault(begin + "\r\nA: b", {.headers = 2}), 0);
  EXPECT_EQ(fault(begin + "\r\nA: b\r\nC: d", {.headers = 2}), 431);
  EXPECT_EQ(head_too_large("GET /aaaaaaaaaaaaaaaaaaaa", {.target = 10}).status, 414);
  EXPECT_EQ(head_too_large("GET / HTTP/1.1\r\nX: aaaaaaaaaaaaaaaaaaaa", {.target = 20}).status, 431);
}

TEST(HttpPath, is_decoded_once) {
  EXPECT_EQ(percent_decoded("a%20b%2Fc%c3%9f"), "a b/c\xc3\x9f");
  EXPECT_EQ(percent_decoded("%2541"), "%41");
  for (const char* wrong : {"%", "%2", "%2x", "%00", "%0a", "%ff", "a%c3"})
    EXPECT_FALSE(percent_decoded(wrong)) << wrong;
}

TEST(HttpPath, gives_the_pattern_its_parameters) {
  EXPECT_TRUE(match_path("/", "/"));
  EXPECT_TRUE(match_path("/v1/models", "/v1/models"));
  EXPECT_TRUE(match_path("/v1/models", "/v1/mod%65ls"));
  for (const char* other : {"/v1", "/v1/models/", "/v1/models/x", "/v1//models", "/", "/v1/model", "/v1/models%"})
    EXPECT_FALSE(match_path("/v1/models", other)) << other;
  const HttpHeaders one = {{"model", "a/b"}};
  EXPECT_EQ(match_path("/models/{model}", "/models/a%2Fb"), one);
  EXPECT_FALSE(match_path("/models/{model}", "/models/a/b"));
  EXPECT_FALSE(match_path("/models/{model}", "/models/"));
  EXPECT_EQ(match_path("/models/{model*}", "/models/a/b"), one);
  EXPECT_FALSE(match_path("/models/{model*}", "/models"));
  const HttpHeaders two = {{"run", "r"}, {"step", "7"}};
  EXPECT_EQ(match_path("/runs/{run}/steps/{step}", "/runs/r/steps/7"), two);
}

TEST(HttpHeader, that_would_begin_another_line_is_none) {
  EXPECT_TRUE(is_header("X-A", "b c"));
  EXPECT_FALSE(is_header("X-A", "b\r\nSet-Cookie: c"));
  EXPECT_FALSE(is_header("X A", "b"));
  EXPECT_FALSE(is_header("", "b"));
}

}  // namespace
}  // namespace systole
