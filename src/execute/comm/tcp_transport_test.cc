// Network failures; transport_test.cc covers what all transports share, tcp_collectives_test.cc collectives over TCP.
#include "execute/comm/tcp_transport.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <random>
#include <set>
#include <thread>

#include "execute/comm/testing/tested_transports.h"
#include "ground/net/testing/tapped_port.h"

namespace systole {
namespace {

class Tcp : public testing::TestWithParam<bool> {
 protected:
  RendezvousClient client() { return ranks_.client(); }
  TcpOptions with_time(Seconds to_connect) const {
    TcpOptions options = ranks_.options(Seconds(10.0));
    options.mesh.connect_time = to_connect;
    return options;
  }
  TcpRanks ranks_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Over, Tcp, testing::Bool(),
                         [](const auto& one) { return std::string(one.param ? "tls" : "plain"); });

// This process's TCP sockets, both ends of each connection.
std::set<int> connections() {
  std::set<int> found;
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 && peer.ss_family == AF_INET)
      found.insert(fd);
  }
  return found;
}

// Whichever socket is cut. A cut data connection ends all ranks and names a rank at one of its ends; a cut status
// connection does no harm.
TEST_P(Tcp, a_socket_cut_inside_a_collective_ends_it_on_all_ranks_and_names_one) {
  int ended = 0;
  for (std::size_t which = 0; which < 12; ++which) {
    const std::set<int> before = connections();
    Transports transports = ranks_.connect(3, Seconds(20.0));
    std::vector<int> ours;
    for (const int fd : connections()) {
      if (!before.contains(fd)) ours.push_back(fd);
    }
    ASSERT_FALSE(ours.empty());
    std::vector<Status> results(3);
    {
      std::vector<std::jthread> threads;
      for (std::size_t r = 0; r < 3; ++r) {
        threads.emplace_back([&, r] {
          for (int i = 0; i < 60 && results[r].ok(); ++i) results[r] = run_once(*transports[r], sum_over(3, {100'000}));
        });
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      ::shutdown(ours[which % ours.size()], SHUT_RDWR);
    }
    if (std::all_of(results.begin(), results.end(), [](const Status& s) { return s.ok(); })) continue;
    ++ended;
    for (const Status& status : results) expect_names(status, ErrorKind::io, {"lost rank "});
  }
  EXPECT_GT(ended, 0);
}

TEST_P(Tcp, ranks_that_do_not_come_to_the_meeting_are_named) {
  std::vector<std::jthread> threads;
  for (const std::int32_t r : {0, 2}) {
    threads.emplace_back([this, r] {
      RendezvousClient rendezvous = client();
      const auto made = tcp_transport(rendezvous, r, 4, with_time(Seconds(0.4)));
      ASSERT_FALSE(made.ok());
      EXPECT_EQ(made.error().kind, ErrorKind::not_found);
      EXPECT_NE(made.error().message.find("for ranks 1, 3, which did not come"), std::string::npos)
          << made.error().message;
    });
  }
}

// Rank 1 and many strangers call rank 0: strangers get no bytes, and rank 1 does not wait for them.
TEST_P(Tcp, strangers_garbage_and_the_wrong_secret_break_nothing) {
  Transports transports(2);
  std::vector<Fd> strangers;
  std::jthread zero([&] {
    RendezvousClient rendezvous = client();
    transports[0] = tcp_transport(rendezvous, 0, 2, ranks_.options(Seconds(10.0))).value();
  });
  RendezvousClient rendezvous = client();
  const std::string place = rendezvous.wait("tcp/0", Seconds(20.0)).value();
  const NetAddress address = parse_address(place.substr(0, place.find(' '))).value();
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    Fd fd = connect_to(address, deadline_after(Seconds(10.0))).value();
    std::vector<std::byte> garbage(static_cast<std::size_t>(random() % 80));
    for (std::byte& byte : garbage) byte = static_cast<std::byte>(random());
    if (garbage.size() > 24) std::memcpy(garbage.data(), "SYSTCP\1\n", 8);
    if (i % 3 == 0) {  // exactly what rank 1 would send, but with a wrong secret
      garbage.resize(36);
      const std::array<std::uint32_t, 3> words{1, 0, static_cast<std::uint32_t>(i % 2)};
      std::memcpy(garbage.data(), "SYSTCP\1\n", 8);
      std::memcpy(garbage.data() + 24, words.data(), 12);
    }
    (void)!::send(fd.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    strangers.push_back(std::move(fd));
  }
  transports[1] = tcp_transport(rendezvous, 1, 2, ranks_.options(Seconds(10.0))).value();
  zero.join();
  std::jthread one([&] { EXPECT_TRUE(run_once(*transports[1], sum_over(2, {5000})).ok()); });
  EXPECT_TRUE(run_once(*transports[0], sum_over(2, {5000})).ok());
  for (const Fd& fd : strangers) {
    std::array<std::byte, 64> bytes;
    ssize_t all = 0;
    for (ssize_t got = 1; got > 0; all += std::max<ssize_t>(got, 0))
      got = ::recv(fd.get(), bytes.data(), bytes.size(), 0);
    EXPECT_LE(all, GetParam() ? 7 : 0) << "a stranger was answered, with more than TLS's alert";
  }
  EXPECT_FALSE(connect_to(address, deadline_after(Seconds(0.02))).ok()) << "nobody listens any more";
}

// Rank 1 connects to rank 0 through a tap.
TEST_P(Tcp, what_a_tap_between_ranks_hears) {
  const bool tls = GetParam();
  const std::string pattern = "a tensor that is all of one pattern";
  std::vector<std::byte> sent(1 << 20), got(sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(pattern[i % pattern.size()]);
  Transports transports(2);
  std::jthread zero([&] {
    RendezvousClient rendezvous = client();
    transports[0] = tcp_transport(rendezvous, 0, 2, ranks_.options(Seconds(20.0))).value();
  });
  RendezvousClient rendezvous = client();
  const std::string place = rendezvous.wait("tcp/0", Seconds(20.0)).value();
  const std::size_t space = place.find(' ');
  TappedPort tap(parse_address(place.substr(0, space)).value());
  ASSERT_TRUE(rendezvous.set("tcp/0", to_string(tap.address()) + place.substr(space)).ok());
  transports[1] = tcp_transport(rendezvous, 1, 2, ranks_.options(Seconds(20.0))).value();
  zero.join();
  const std::vector<Status> results = results_on(transports, [&](std::int32_t rank, Transport& transport) -> Status {
    const Outgoing out = message_to(1, sent);
    const Incoming in = message_from(0, got);
    Exchange exchange;
    rank == 0 ? void(exchange.out = std::span(&out, 1)) : void(exchange.in = std::span(&in, 1));
    TRY(transport.begin(exchange));
    TRY(transport.advance(true));
    return Done{};
  });
  for (const Status& status : results) ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(got, sent);
  EXPECT_GT(tap.num_bytes(), sent.size());
  const RunToken secret = RunToken::parse(place.substr(space + 1)).value();
  EXPECT_EQ(tap.heard(pattern), !tls);
  EXPECT_EQ(tap.heard(secret), !tls) << "what rank 1 shows rank 0";
  EXPECT_FALSE(tap.heard(ranks_.token()));
  transports.clear();
}

// One rank started with TLS and one without, though the rendezvous admits both.
TEST(TcpMixed, ranks_with_tls_and_without_do_not_meet_and_say_who) {
  TcpRanks plain;
  for (const bool zero_encrypts : {true, false}) {
    ASSERT_TRUE(plain.client().erase("tcp/").ok());
    const std::shared_ptr<const Tls> tls = Tls::of(plain.token()).value();
    std::vector<Status> results(2, Status(Done{}));
    {
      std::vector<std::jthread> threads;
      for (std::int32_t r = 0; r < 2; ++r) {
        threads.emplace_back([&, r] {
          RendezvousClient rendezvous = plain.client();
          TcpOptions options = plain.options(Seconds(5.0));
          options.mesh.connect_time = Seconds(1.0);
          if ((r == 0) == zero_encrypts) options.mesh.tls = tls;
          const auto made = tcp_transport(rendezvous, r, 2, options);
          if (!made.ok()) results[static_cast<std::size_t>(r)] = made.error();
        });
      }
    }
    ASSERT_FALSE(results[0].ok());
    ASSERT_FALSE(results[1].ok());
    EXPECT_NE(results[0].error().message.find("rank 1"), std::string::npos) << results[0].error().message;
    EXPECT_NE(results[1].error().message.find("rank 0"), std::string::npos) << results[1].error().message;
  }
}

}  // namespace
}  // namespace systole
