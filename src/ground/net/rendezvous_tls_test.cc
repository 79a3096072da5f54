// The rendezvous over TLS: the same calls, no readable bytes on the wire, and refusal of clients without TLS or with
// another token.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "ground/net/lease_keeper.h"
#include "ground/net/rendezvous_client.h"
#include "ground/net/rendezvous_server.h"
#include "ground/net/testing/tapped_port.h"
#include "ground/net/testing/waiting_requests.h"

namespace systole {
namespace {

using std::chrono::steady_clock;

class RendezvousTls : public testing::Test {
 protected:
  void start(bool tls, Seconds hello_time = Seconds(2.0)) {
    server_ = RendezvousServer::start(token_, {.hello_time = hello_time, .tls = tls}).value();
  }
  Result<RendezvousClient> connect(bool tls, const RunToken& token) {
    return RendezvousClient::connect(server_->address(), token, {.connect_time = Seconds(20.0), .tls = tls});
  }
  RendezvousClient client() { return connect(true, token_).value(); }
  Fd stranger() { return connect_to(server_->address(), deadline_after(Seconds(20.0))).value(); }
  RunToken token_ = RunToken::make().value();
  std::unique_ptr<RendezvousServer> server_;
};

// A frame of one MiB spans many records; the last is read from the socket long before it is requested.
TEST_F(RendezvousTls, the_longest_frames_pass_both_ways) {
  start(true);
  RendezvousClient a = client();
  const std::string longest(64 * 1024, 'x');
  for (int i = 0; i < 15; ++i) ASSERT_TRUE(a.set("big/" + std::to_string(i), longest).ok()) << i;
  for (int i = 0; i < 20; ++i) ASSERT_EQ(a.list("big/").value().size(), 15u);
  for (std::size_t size = 16'300; size < 16'450; ++size) {  // around the length of a record
    ASSERT_TRUE(a.set("k", std::string(size, 'y')).ok()) << size;
    ASSERT_EQ(a.get("k").value()->size(), size);
  }
}

TEST_F(RendezvousTls, one_waits_until_another_writes_and_leases_are_kept) {
  start(true);
  std::thread writer([this] {
    RendezvousClient other = client();
    EXPECT_TRUE(comes_to_wait(*server_, 1));
    EXPECT_TRUE(other.set("k", "now").ok());
  });
  RendezvousClient a = client();
  EXPECT_EQ(a.wait("k", Seconds(30.0)).value(), "now");
  writer.join();
  const auto keeper = LeaseKeeper::start(server_->address(), token_,
                                         {.name = "rank/1", .who = "me", .time_to_live = Seconds(0.3), .tls = true},
                                         [](const Error& why) { ADD_FAILURE() << why.message; });
  ASSERT_TRUE(keeper.ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_TRUE(a.leases("rank/1").value().at(0).live());
}

// Two requests in one record: the second is decrypted and buffered while the first is being answered.
TEST_F(RendezvousTls, a_request_that_came_with_another_is_answered) {
  start(true);
  NetStream stream(stranger());
  stream.encrypt(Tls::of(token_).value(), TlsSide::client);
  const NetDeadline until = deadline_after(Seconds(20.0));
  ASSERT_TRUE(shake_hands(stream, until, "server").ok());
  std::vector<std::byte> all = encode_hello(token_);
  for (const char* key : {"first", "second"}) {
    const auto frame = encode(RendezvousRequest{.op = RendezvousOp::get, .wait_ms = 60'000, .key = key});
    all.insert(all.end(), frame.begin(), frame.end());
  }
  ASSERT_TRUE(send_all(stream, all, until, "server").ok());
  ASSERT_TRUE(comes_to_wait(*server_, 1));
  RendezvousClient other = client();
  ASSERT_TRUE(other.set("second", "b").ok());
  ASSERT_TRUE(other.set("first", "a").ok());
  std::vector<std::byte> answers(kRendezvousMagic.size() + 2 * encode(RendezvousReply{.value = "a"}).size());
  const Status got = receive_all(stream, answers, until, "server");
  EXPECT_TRUE(got.ok()) << got.error().message;
}

TEST_F(RendezvousTls, nothing_passes_readable) {
  const std::string value = "who listens knows this value";
  for (const bool tls : {false, true}) {
    start(tls);
    TappedPort tap(server_->address());
    RendezvousClient a = RendezvousClient::connect(tap.address(), token_, {.tls = tls}).value();
    ASSERT_TRUE(a.set("k", value).ok());
    EXPECT_EQ(a.get("k").value(), value);
    EXPECT_GT(tap.num_bytes(), 100u);
    EXPECT_EQ(tap.heard(token_), !tls);
    EXPECT_EQ(tap.heard(value), !tls);
    EXPECT_EQ(tap.heard(std::string(kRendezvousMagic)), !tls);
  }
}

TEST_F(RendezvousTls, one_with_it_and_one_without_are_told_which_at_once) {
  for (const bool leader : {true, false}) {
    start(leader);
    const auto began = steady_clock::now();
    const Result<RendezvousClient> other = connect(!leader, token_);
    EXPECT_LT(steady_clock::now() - began, std::chrono::seconds(1));
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().kind, ErrorKind::invalid);
    const std::string told = to_string(other.error());
    const std::string who =
        leader ? " runs with ranks.tls, and this node without" : "this node runs with ranks.tls, and the rendezvous at";
    EXPECT_NE(told.find(who), told.npos) << told;
    EXPECT_NE(told.find("hint: --set ranks.tls="), told.npos) << told;
    EXPECT_TRUE(connect(leader, token_).ok());
  }
}

TEST_F(RendezvousTls, another_token_is_named) {
  start(true);
  const Result<RendezvousClient> other = connect(true, RunToken::make().value());
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().kind, ErrorKind::invalid);
  EXPECT_NE(other.error().message.find("holds the key of another token"), std::string::npos) << other.error().message;
  EXPECT_FALSE(connect(false, RunToken::make().value()).ok()) << "nor without it";
  EXPECT_TRUE(connect(true, token_).ok());
}

TEST_F(RendezvousTls, strangers_are_closed_and_keep_nobody_waiting) {
  start(true, Seconds(0.3));
  std::vector<Fd> held;
  const std::string hello_of_tls("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  for (int i = 0; i < 300; ++i) {  // garbage; a handshake that stops; silence; a hello without the token
    held.push_back(stranger());
    const std::string text = i % 4 == 0   ? std::string(200, 'g')
                             : i % 4 == 1 ? hello_of_tls
                             : i % 4 == 2 ? ""
                                          : std::string(kRendezvousMagic) + std::string(16, 'k');
    (void)!::send(held.back().get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  RendezvousClient known = client();
  EXPECT_TRUE(known.set("k", "v").ok());
  for (const Fd& fd : held) {  // at most an alert, then the end
    std::array<std::byte, 64> heard;
    std::size_t size = 0;
    while (wait_for(fd.get(), POLLIN, deadline_after(Seconds(20.0)))) {
      const ssize_t got = ::recv(fd.get(), heard.data(), heard.size(), 0);
      if (got <= 0) break;
      size += static_cast<std::size_t>(got);
    }
    EXPECT_LE(size, 7u);
  }
  EXPECT_EQ(server_->turned_away(), 300);
  EXPECT_EQ(known.get("k").value(), "v");
}

}  // namespace
}  // namespace systole
