#include "ground/net/http_get.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace systole {
namespace {

TEST(HttpGet, addresses_are_read) {
  const HttpPlace place = parse_http("http://metadata.google.internal/computeMetadata/v1/x").value();
  EXPECT_EQ(place.address.host, "metadata.google.internal");
  EXPECT_EQ(place.address.port, 80);
  EXPECT_EQ(place.path, "/computeMetadata/v1/x");
  EXPECT_EQ(parse_http("http://127.0.0.1:8080").value().path, "/");
  EXPECT_EQ(parse_http("http://127.0.0.1:8080").value().address.port, 8080);
  for (const char* wrong :
       {"https://x/", "x", "http://", "http:///x", "http://h:x/", "http://h/a b", "http://h/\r\nX: y"})
    EXPECT_FALSE(parse_http(wrong).ok()) << wrong;
  EXPECT_TRUE(parse_http("https://me:hunter2@h/").error().message.starts_with("'https://***@h/' is no address"));
}

// The result of http_get from a peer that sends `text` and closes.
Result<HttpAnswer> answered(const std::string& text) {
  const ListeningSocket listening = listen_on({"127.0.0.1", 0}).value();
  std::jthread peer([&] {
    for (int look = 0; look < 1000; ++look) {
      const Fd fd(::accept4(listening.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (fd.get() < 0) {
        ::usleep(2'000);
        continue;
      }
      char request[1024];
      (void)!::recv(fd.get(), request, sizeof request, 0);
      (void)!::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
      return;
    }
  });
  return http_get({{"127.0.0.1", listening.port}, "/x"}, {}, deadline_after(Seconds(5.0)));
}

TEST(HttpGet, status_and_body) {
  const HttpAnswer answer = answered("HTTP/1.1 404 Not Found\r\nA: b\r\n\r\nno such\r\n\r\nthing").value();
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.body, "no such\r\n\r\nthing");
}

TEST(HttpGet, what_is_no_http_and_who_is_silent) {
  EXPECT_EQ(answered("hello").error().kind, ErrorKind::corrupt);
  EXPECT_EQ(answered("").error().kind, ErrorKind::corrupt);
  const ListeningSocket silent = listen_on({"127.0.0.1", 0}).value();
  EXPECT_EQ(http_get({{"127.0.0.1", silent.port}, "/"}, {}, deadline_after(Seconds(0.1))).error().kind, ErrorKind::io);
}

}  // namespace
}  // namespace systole
