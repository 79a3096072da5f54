#include "ground/store/testing/faulty_proxy.h"

#include <gtest/gtest.h>

#include "ground/net/http_pool.h"

namespace systole {
namespace {

// A request that the server has begun to answer is done: it must not arrive there twice, unless a fault says so.
TEST(FaultyProxy, sends_again_only_what_had_no_answer_at_all) {
  std::atomic<int> arrived = 0;
  StubServer server([&](const StubRequest& request, StubAnswer& answer) {
    ++arrived;
    if (request.path == "/closed") return answer.raw("HTTP/1.1 200 x\r\nContent-Length: 2\r\n\r\nok", false);
    request.path == "/cut" ? answer.cut(200, "four", {}, 2) : answer.whole(200, "ok");
  });
  FaultyProxy proxy(server.port(), [](const StubRequest&, std::int64_t) { return ProxyFault::none; });
  HttpPool pool({});
  const auto ask = [&](const std::string& path) { return pool.send({.url = proxy.url() + path, .once = true}); };
  EXPECT_EQ(ask("/kept")->body, "ok");
  EXPECT_FALSE(ask("/cut").ok());
  EXPECT_EQ(arrived, 2);
  EXPECT_EQ(ask("/closed")->body, "ok");  // and the proxy keeps that connection, as it does not say so
  EXPECT_EQ(ask("/kept")->body, "ok");
  EXPECT_EQ(arrived, 4);
}

}  // namespace
}  // namespace systole
