// What only a network does; what all transports do is in transport_test.cc, what collectives give over it in
// tcp_collectives_test.cc.
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

namespace systole {
namespace {

class Tcp : public testing::Test {
 protected:
  RendezvousClient client() { return ranks_.client(); }
  TcpRanks ranks_;
};

// This process's connections over TCP, both ends of each.
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

// Whichever it is. Data cut short ends all ranks with the name of one at its ends; a cut of what they tell each other
// of waiting harms nothing.
TEST_F(Tcp, a_socket_cut_inside_a_collective_ends_it_on_all_ranks_and_names_one) {
  int ended = 0;
  for (std::size_t which = 0; which < 12; ++which) {
    const std::set<int> before = connections();
    Transports transports = ranks_.meet(3, Seconds(20.0));
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

TEST_F(Tcp, ranks_that_do_not_come_to_the_meeting_are_named) {
  std::vector<std::jthread> threads;
  for (const std::int32_t r : {0, 2}) {
    threads.emplace_back([this, r] {
      RendezvousClient rendezvous = client();
      const auto made = tcp_transport(rendezvous, r, 4, {.mesh = {.connect_time = Seconds(0.4)}});
      ASSERT_FALSE(made.ok());
      EXPECT_EQ(made.error().kind, ErrorKind::not_found);
      EXPECT_NE(made.error().message.find("for ranks 1, 3, which did not come"), std::string::npos)
          << made.error().message;
    });
  }
}

// Rank 1 and many strangers call rank 0: the strangers hear nothing, and rank 1 does not wait for them.
TEST_F(Tcp, strangers_garbage_and_the_wrong_secret_break_nothing) {
  Transports transports(2);
  std::vector<Fd> strangers;
  std::jthread zero([&] {
    RendezvousClient rendezvous = client();
    transports[0] = tcp_transport(rendezvous, 0, 2, {.patience = Seconds(10.0)}).value();
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
    if (i % 3 == 0) {  // all of it as rank 1 would say it, but for the secret
      garbage.resize(36);
      const std::array<std::uint32_t, 3> words{1, 0, static_cast<std::uint32_t>(i % 2)};
      std::memcpy(garbage.data(), "SYSTCP\1\n", 8);
      std::memcpy(garbage.data() + 24, words.data(), 12);
    }
    (void)!::send(fd.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    strangers.push_back(std::move(fd));
  }
  transports[1] = tcp_transport(rendezvous, 1, 2, {.patience = Seconds(10.0)}).value();
  zero.join();
  std::jthread one([&] { EXPECT_TRUE(run_once(*transports[1], sum_over(2, {5000})).ok()); });
  EXPECT_TRUE(run_once(*transports[0], sum_over(2, {5000})).ok());
  for (const Fd& fd : strangers) {
    std::byte byte;
    const ssize_t got = ::recv(fd.get(), &byte, 1, 0);
    EXPECT_LE(got, 0) << "a stranger was answered";
  }
  EXPECT_FALSE(connect_to(address, deadline_after(Seconds(0.02))).ok()) << "nobody listens any more";
}

}  // namespace
}  // namespace systole
