// Client and server over 127.0.0.1.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "ground/net/rendezvous_client.h"
#include "ground/net/rendezvous_server.h"
#include "ground/net/testing/waiting_requests.h"

namespace systole {
namespace {

class Rendezvous : public testing::Test {
 protected:
  RendezvousClient client(std::uint64_t generation = 0) {
    return RendezvousClient::connect(server_->address(), token_, {.generation = generation}).value();
  }
  RunToken token_ = RunToken::make().value();
  std::unique_ptr<RendezvousServer> server_ = RendezvousServer::start(token_).value();
};

TEST_F(Rendezvous, every_operation_goes_there_and_back) {
  RendezvousClient a = client();
  EXPECT_FALSE(a.get("k").value().has_value());
  EXPECT_TRUE(a.set("k", std::string("v\0w", 3)).ok());
  EXPECT_EQ(a.get("k").value(), std::string("v\0w", 3));
  EXPECT_EQ(a.add("n", 3).value(), 3);
  EXPECT_EQ(a.add("n", -1).value(), 2);
  EXPECT_EQ(a.add("k", 1).error().kind, ErrorKind::invalid);
  EXPECT_TRUE(a.compare_and_set("c", {}, "1").value().swapped);
  const RendezvousSwap lost = a.compare_and_set("c", {}, "2").value();
  EXPECT_FALSE(lost.swapped);
  EXPECT_EQ(lost.value, "1");
  EXPECT_FALSE(a.compare_and_set("none", "x", "2").value().value.has_value());
  EXPECT_EQ(a.list("").value().size(), 3u);
  EXPECT_EQ(a.erase("").value(), 3);
  EXPECT_TRUE(a.lease("rank/1", 7, Seconds(100.0), "me").ok());
  EXPECT_EQ(client().lease("rank/1", 8, Seconds(100.0), "you").error().message, "'rank/1' is there already: me");
  const std::vector<RendezvousLease> leases = a.leases("rank/").value();
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_TRUE(leases[0].live());
  EXPECT_TRUE(a.release("rank/1", 7).ok());
  EXPECT_EQ(a.release("rank/1", 7).error().kind, ErrorKind::not_found);
}

TEST_F(Rendezvous, values_as_long_as_allowed_pass_and_longer_ones_are_refused) {
  RendezvousClient a = client();
  const std::string longest(64 * 1024, 'x');
  for (int i = 0; i < 15; ++i) EXPECT_TRUE(a.set("big/" + std::to_string(i), longest).ok());
  EXPECT_EQ(a.list("big/").value().size(), 15u);
  EXPECT_EQ(a.set("more", longest + "x").error().kind, ErrorKind::invalid);
  EXPECT_EQ(a.set("more", std::string(kRendezvousFrame, 'x')).error().kind, ErrorKind::invalid);
  EXPECT_EQ(a.get("big/3").value(), longest) << "the connection lives on";
}

TEST_F(Rendezvous, one_waits_until_another_writes) {
  std::thread writer([this] {
    RendezvousClient other = client();
    for (const char* value : {"now", "then"}) {
      EXPECT_TRUE(comes_to_wait(*server_, 1)) << value;
      EXPECT_TRUE(other.set("k", value).ok());
    }
  });
  RendezvousClient a = client();
  EXPECT_EQ(a.wait("k", Seconds(30.0)).value(), "now");
  EXPECT_EQ(a.wait("k", Seconds(30.0), "now").value(), "then");
  writer.join();
  const Result<std::string> never = a.wait("never", Seconds(0.03));
  EXPECT_EQ(never.error().kind, ErrorKind::not_found);
  EXPECT_EQ(never.error().message, "nobody wrote 'never' within 30.0 ms");
}

TEST_F(Rendezvous, a_barrier_names_the_missing_and_forgets_the_dead) {
  std::vector<std::thread> members;
  std::vector<Status> came(4, Status(Done{}));
  for (int i = 0; i < 4; ++i) {
    members.emplace_back([&, i] { came[i] = client().barrier("start", 4, i, Seconds(30.0)); });
  }
  for (std::thread& member : members) member.join();
  for (const Status& status : came) EXPECT_TRUE(status.ok());

  {  // member 1 arrives, and its process dies
    RendezvousClient dies = client();
    EXPECT_FALSE(dies.barrier("again", 3, 1, Seconds(0.01)).ok());
  }
  const Status missing = client().barrier("again", 3, 0, Seconds(0.05));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::not_found);
  EXPECT_EQ(missing.error().message, "2 of 3 did not come to barrier 'again' within 50.0 ms: 1, 2");
}

TEST_F(Rendezvous, a_connection_that_breaks_while_it_waits_leaves_the_barrier) {
  std::thread waits([this] {  // uses the raw protocol, to close in the middle of a request
    const Fd fd = connect_to(server_->address(), deadline_after(Seconds(10.0))).value();
    std::array<std::byte, 8> welcome;
    EXPECT_TRUE(send_all(fd.get(), encode_hello(token_), deadline_after(Seconds(10.0)), "server").ok());
    EXPECT_TRUE(receive_all(fd.get(), welcome, deadline_after(Seconds(10.0)), "server").ok());
    const auto arrives = encode(
        RendezvousRequest{.op = RendezvousOp::barrier, .holder = 0, .number = 2, .wait_ms = 60'000, .key = "broken"});
    EXPECT_TRUE(send_all(fd.get(), arrives, deadline_after(Seconds(10.0)), "server").ok());
    EXPECT_TRUE(comes_to_wait(*server_, 1));
  });
  waits.join();
  // Member 0 may arrive again without "already there". The loop is bounded: the server notices the close soon.
  RendezvousClient again = client();
  Status came = again.barrier("broken", 2, 0, Seconds(0.01));
  for (int i = 0; i < 200 && !came.ok() && came.error().kind == ErrorKind::exists; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    came = again.barrier("broken", 2, 0, Seconds(0.01));
  }
  EXPECT_EQ(came.error().kind, ErrorKind::not_found);
}

TEST_F(Rendezvous, an_old_generation_is_told_so_also_while_it_waits) {
  RendezvousClient agent = client();
  EXPECT_TRUE(agent.fence(1).ok());
  RendezvousClient old = client(1);
  EXPECT_TRUE(old.set("address/0", "here").ok());
  Status waited = Done{};
  std::thread waits([&] { waited = client(1).barrier("step", 2, 0, Seconds(60.0)); });
  EXPECT_TRUE(comes_to_wait(*server_, 1));
  EXPECT_TRUE(agent.fence(2).ok());
  waits.join();
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().kind, ErrorKind::interrupted);
  EXPECT_EQ(old.set("address/0", "late").error().message, "generation 1 is over: generation 2 runs");
  EXPECT_FALSE(agent.get("address/0").value().has_value());
  EXPECT_TRUE(client(2).set("address/0", "new").ok());
  EXPECT_EQ(agent.fence(2).error().kind, ErrorKind::exists);
}

TEST_F(Rendezvous, the_wrong_token_is_named_as_the_likely_reason) {
  const Result<RendezvousClient> wrong =
      RendezvousClient::connect(server_->address(), RunToken::make().value(), {.connect_time = Seconds(5.0)});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().kind, ErrorKind::invalid);
  EXPECT_NE(to_string(wrong.error()).find("token"), std::string::npos);
}

TEST_F(Rendezvous, another_version_is_told_ours_if_it_has_the_token) {
  const auto welcome_of = [&](const RunToken& token) {
    std::vector<std::byte> hello = encode_hello(token);
    hello[6] = std::byte{2};
    const Fd fd = connect_to(server_->address(), deadline_after(Seconds(10.0))).value();
    std::vector<std::byte> welcome(8);
    EXPECT_TRUE(send_all(fd.get(), hello, deadline_after(Seconds(10.0)), "server").ok());
    return receive_all(fd.get(), welcome, deadline_after(Seconds(10.0)), "server").ok() ? welcome
                                                                                        : std::vector<std::byte>();
  };
  const auto magic = std::as_bytes(std::span(kRendezvousMagic));
  EXPECT_EQ(welcome_of(token_), std::vector<std::byte>(magic.begin(), magic.end()));
  EXPECT_TRUE(welcome_of(RunToken::make().value()).empty());
}

// The errors of a client at a wrong port or of another version.
TEST(RendezvousStranger, is_named_by_what_it_says) {
  const auto told_by = [](std::string_view answer) {
    const ListeningSocket socket = listen_on({"127.0.0.1", 0}).value();
    std::jthread stranger([&] {
      pollfd one{socket.fd.get(), POLLIN, 0};
      ::poll(&one, 1, 10'000);
      const Fd peer(::accept(socket.fd.get(), nullptr, nullptr));
      (void)!::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      char byte;
      while (::recv(peer.get(), &byte, 1, 0) > 0) continue;
    });
    return to_string(
        RendezvousClient::connect({"127.0.0.1", socket.port}, RunToken::make().value(), {.connect_time = Seconds(0.5)})
            .error());
  };
  EXPECT_NE(told_by("SSH-2.0-OpenSSH_9.2\r\n").find("another program listens"), std::string::npos);
  EXPECT_NE(told_by("").find("another program may listen there"), std::string::npos);
  EXPECT_NE(told_by({"SYSRDV\2\n", 8}).find("is of another version of systole"), std::string::npos);
}

TEST_F(Rendezvous, a_server_that_ends_is_an_error_at_once) {
  RendezvousClient a = client();
  std::thread stops([this] {
    EXPECT_TRUE(comes_to_wait(*server_, 1));
    server_.reset();
  });
  const Result<std::string> waited = a.wait("k", Seconds(60.0));
  stops.join();
  EXPECT_EQ(waited.error().kind, ErrorKind::io);
  EXPECT_EQ(a.set("k", "v").error().message, waited.error().message);
}

TEST_F(Rendezvous, two_servers_cannot_have_one_port) {
  const auto second = RendezvousServer::start(token_, {.bind = server_->address()});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::busy);
}

}  // namespace
}  // namespace systole
