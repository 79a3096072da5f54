// Hostile and numerous clients: strangers, garbage, partial frames, slow peers, ten thousand connections. All are
// closed without an answer, and clients with the token are not delayed.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <deque>
#include <thread>

#include "ground/base/philox.h"
#include "ground/net/rendezvous_client.h"
#include "ground/net/rendezvous_server.h"

namespace systole {
namespace {

using std::chrono::steady_clock;

class RendezvousCrowd : public testing::Test {
 protected:
  void start(RendezvousServerOptions options = {}) { server_ = RendezvousServer::start(token_, options).value(); }
  Fd stranger() { return connect_to(server_->address(), deadline_after(Seconds(20.0))).value(); }
  RendezvousClient client() { return RendezvousClient::connect(server_->address(), token_).value(); }
  // Sends as much as possible, whether or not the other side still reads.
  static void say(const Fd& fd, std::span<const std::byte> bytes) {
    (void)!::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // The number of bytes received until the server closes; -1 if it has not by the deadline.
  static int heard_until_closed(const Fd& fd, Seconds longest) {
    std::byte byte;
    for (int heard = 0;; ++heard) {
      const Status got = receive_all(fd.get(), std::span(&byte, 1), deadline_after(longest), "server");
      if (!got.ok()) return got.error().message == "server does not answer" ? -1 : heard;
    }
  }
  void expect_quick(RendezvousClient& known) {
    const auto began = steady_clock::now();
    EXPECT_TRUE(known.set("k", "v").ok());
    EXPECT_EQ(known.get("k").value(), "v");
    EXPECT_LT(steady_clock::now() - began, std::chrono::seconds(5)) << "others were waited for";
  }
  RunToken token_ = RunToken::make().value();
  std::unique_ptr<RendezvousServer> server_;
};

TEST_F(RendezvousCrowd, without_the_token_nothing_is_answered) {
  start({.hello_time = Seconds(0.3)});
  std::vector<std::byte> wrong = encode_hello(token_);
  wrong.back() ^= std::byte{1};
  const Fd almost = stranger();
  say(almost, wrong);
  EXPECT_EQ(heard_until_closed(almost, Seconds(20.0)), 0);

  std::vector<std::byte> magic = encode_hello(token_);
  magic.front() ^= std::byte{1};
  const Fd other_protocol = stranger();
  say(other_protocol, magic);
  EXPECT_EQ(heard_until_closed(other_protocol, Seconds(20.0)), 0);

  const Fd request = stranger();  // no hello
  say(request, encode(RendezvousRequest{.op = RendezvousOp::list}));
  EXPECT_EQ(heard_until_closed(request, Seconds(20.0)), 0);

  const Fd silent = stranger(), half = stranger();
  const std::vector<std::byte> hello = encode_hello(token_);
  say(half, std::span(hello).first(20));
  EXPECT_EQ(heard_until_closed(silent, Seconds(20.0)), 0);
  EXPECT_EQ(heard_until_closed(half, Seconds(20.0)), 0);
  EXPECT_EQ(server_->turned_away(), 5);
  RendezvousClient known = client();
  expect_quick(known);
}

TEST_F(RendezvousCrowd, the_slow_are_closed_in_the_middle_of_what_they_say) {
  start({.hello_time = Seconds(0.3), .frame_time = Seconds(0.3)});
  const Fd drips = stranger();  // a hello, byte by byte
  const auto began = steady_clock::now();
  const std::vector<std::byte> hello = encode_hello(token_);
  std::size_t said = 0;
  while (steady_clock::now() - began < std::chrono::seconds(1) && said + 1 < hello.size()) {
    say(drips, std::span(hello).subspan(said++, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(heard_until_closed(drips, Seconds(20.0)), 0);

  const Fd half = stranger();  // knows the token, and stops in the middle of a frame
  say(half, encode_hello(token_));
  const std::vector<std::byte> request = encode(RendezvousRequest{.op = RendezvousOp::set, .key = "k"});
  say(half, std::span(request).first(9));
  EXPECT_EQ(heard_until_closed(half, Seconds(20.0)), 8) << "the welcome, and no more";

  const Fd deaf = stranger();  // makes large requests and never reads
  RendezvousClient known = client();
  for (int i = 0; i < 15; ++i) EXPECT_TRUE(known.set("big/" + std::to_string(i), std::string(64 * 1024, 'x')).ok());
  say(deaf, encode_hello(token_));
  for (int i = 0; i < 64; ++i) say(deaf, encode(RendezvousRequest{.op = RendezvousOp::list, .key = "big/"}));
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  expect_quick(known);
  EXPECT_GE(heard_until_closed(deaf, Seconds(20.0)), 0) << "closed";
}

TEST_F(RendezvousCrowd, an_idle_client_is_no_slow_one) {
  start({.hello_time = Seconds(0.1), .frame_time = Seconds(0.1)});
  RendezvousClient idle = client();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_TRUE(idle.set("k", "v").ok());
  EXPECT_EQ(idle.wait("never", Seconds(0.4)).error().kind, ErrorKind::not_found);
}

TEST_F(RendezvousCrowd, garbage_from_one_who_knows_the_token_closes_that_one_alone) {
  start();
  RendezvousClient known = client();
  PhiloxStream random(11);
  for (int i = 0; i < 300; ++i) {
    const Fd fd = stranger();
    if (i % 2 == 0) say(fd, encode_hello(token_));
    std::vector<std::byte> bytes =
        encode(RendezvousRequest{.op = RendezvousOp::barrier, .number = 2, .wait_ms = 50, .key = "b"});
    const std::uint64_t changes = 1 + random.below(12);
    for (std::uint64_t c = 0; c < changes; ++c)
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
    say(fd, bytes);
  }
  expect_quick(known);
}

TEST_F(RendezvousCrowd, ten_thousand_connections_keep_nobody_out) {
  start();
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const std::size_t at_once = std::min<std::size_t>(500, files.rlim_cur / 4);
  RendezvousClient before = client();
  std::deque<Fd> crowd;
  for (int i = 0; i < 10'000; ++i) {
    crowd.push_back(stranger());
    if (crowd.size() > at_once) crowd.pop_front();
    if (i % 1000 == 999) {
      expect_quick(before);
      RendezvousClient newcomer = client();
      expect_quick(newcomer);
    }
  }
  EXPECT_GT(server_->turned_away(), 9'000);
}

TEST_F(RendezvousCrowd, clients_beyond_the_limit_are_closed) {
  start({.clients = 3});
  std::vector<RendezvousClient> three;
  for (int i = 0; i < 3; ++i) three.push_back(client());
  EXPECT_FALSE(RendezvousClient::connect(server_->address(), token_, {.connect_time = Seconds(1.0)}).ok());
  three.pop_back();
  const auto again = [&] {
    return RendezvousClient::connect(server_->address(), token_, {.connect_time = Seconds(1.0)}).ok();
  };
  bool in = again();
  for (int i = 0; i < 50 && !in; ++i) in = again();
  EXPECT_TRUE(in);
  for (RendezvousClient& known : std::span(three).first(2)) expect_quick(known);
}

}  // namespace
}  // namespace systole
