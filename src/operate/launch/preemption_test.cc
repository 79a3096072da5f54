#include "operate/launch/preemption.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace systole {
namespace {

// A metadata server on loopback; returns `flag` to requests in the form that Google's server requires.
class MetadataServer {
 public:
  MetadataServer() : listening_(listen_on({"127.0.0.1", 0}).value()) {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) serve_one();
    });
  }
  std::string address() const { return fmt::format("http://127.0.0.1:{}/instance/preempted", listening_.port); }
  std::atomic<const char*> flag{"FALSE"};
  std::atomic<int> asked{0};

 private:
  void serve_one() {
    const Fd fd(::accept4(listening_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (fd.get() < 0) {
      ::usleep(2'000);
      return;
    }
    char text[2048] = {};
    if (::recv(fd.get(), text, sizeof text - 1, 0) <= 0) return;
    const std::string request = text;
    const bool well = request.starts_with("GET /instance/preempted HTTP/1.") &&
                      request.find("Metadata-Flavor: Google\r\n") != std::string::npos;
    const std::string answer = well ? fmt::format("HTTP/1.0 200 OK\r\nMetadata-Flavor: Google\r\n\r\n{}", flag.load())
                                    : "HTTP/1.0 403 Forbidden\r\n\r\n";
    (void)!::send(fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    ++asked;
  }
  ListeningSocket listening_;
  std::jthread thread_;
};

bool comes(const std::function<bool()>& what) {
  for (int look = 0; look < 1000 && !what(); ++look) ::usleep(5'000);
  return what();
}

TEST(Preemption, is_heard_from_the_metadata_server) {
  MetadataServer server;
  const auto watch = PreemptionWatch::start({server.address(), Seconds(0.02)}).value();
  ASSERT_TRUE(comes([&] { return server.asked >= 3; }));
  EXPECT_FALSE(watch->announced());
  server.flag = "TRUE";
  EXPECT_TRUE(comes([&] { return watch->announced(); }));
}

TEST(Preemption, a_server_that_is_not_there_says_nothing) {
  const int port = free_port().value();
  const auto watch = PreemptionWatch::start({fmt::format("http://127.0.0.1:{}/", port), Seconds(0.02)}).value();
  ::usleep(100'000);
  EXPECT_FALSE(watch->announced());
}

TEST(Preemption, off_is_off_and_no_address_is_refused) {
  EXPECT_FALSE(PreemptionWatch::start({"off"}).value()->looks());
  EXPECT_EQ(PreemptionWatch::start({"http://"}).error().kind, ErrorKind::invalid);
}

}  // namespace
}  // namespace systole
