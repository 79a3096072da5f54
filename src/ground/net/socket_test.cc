#include "ground/net/socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <future>
#include <thread>

#include "ground/net/token.h"

namespace systole {
namespace {

TEST(Address, reads_hosts_and_ports) {
  EXPECT_EQ(parse_address("10.0.0.1:7000").value(), (NetAddress{"10.0.0.1", 7000}));
  EXPECT_EQ(parse_address("[::1]:1").value(), (NetAddress{"::1", 1}));
  EXPECT_EQ(parse_address("node-3.cluster:0").value(), (NetAddress{"node-3.cluster", 0}));
  for (const char* wrong : {"", ":", "host", "host:", ":7", "host:-1", "host:65536", "host:7x", "::1:7", "host: 7"}) {
    EXPECT_FALSE(parse_address(wrong).ok()) << wrong;
  }
  for (const char* text : {"10.0.0.1:7000", "[fe80::1]:80"}) EXPECT_EQ(to_string(parse_address(text).value()), text);
}

TEST(Socket, names_a_port_in_use_and_a_host_that_is_none) {
  const ListeningSocket first = listen_on({}).value();
  EXPECT_GT(first.port, 0);
  const Result<ListeningSocket> second = listen_on({"127.0.0.1", first.port});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::busy);
  EXPECT_NE(second.error().message.find(std::to_string(first.port)), std::string::npos);
  EXPECT_EQ(listen_on({"no.such.host.invalid", 0}).error().kind, ErrorKind::not_found);
}

TEST(Socket, knows_its_own_address_on_the_way_to_another) {
  EXPECT_EQ(own_address_towards({"127.0.0.1", 7000}).value(), "127.0.0.1");
  EXPECT_TRUE(is_loopback(own_address_towards({"localhost", 7000}).value()));
  EXPECT_EQ(own_address_towards({"no.such.host.invalid", 7000}).error().kind, ErrorKind::not_found);
  for (const char* here : {"127.0.0.1", "127.0.1.1", "::1", "localhost"}) EXPECT_TRUE(is_loopback(here)) << here;
  for (const char* there : {"10.0.0.1", "node0", "fe80::1", "12.7.0.0", "127.example.com", "127."})
    EXPECT_FALSE(is_loopback(there)) << there;
}

TEST(Socket, waits_for_a_listener_that_comes_late_and_gives_up_on_none) {
  const int port = free_port().value();
  std::promise<void> tried;
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const ListeningSocket socket = listen_on({"127.0.0.1", port}).value();
    tried.get_future().wait();
  });
  EXPECT_TRUE(connect_to({"127.0.0.1", port}, deadline_after(Seconds(20.0))).ok());
  tried.set_value();
  late.join();
  const Result<Fd> none = connect_to({"127.0.0.1", port}, deadline_after(Seconds(0.05)));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::io);
}

TEST(Socket, a_name_that_nobody_knows_yet_is_asked_for_until_the_deadline) {
  const auto began = std::chrono::steady_clock::now();
  const Result<Fd> none = connect_to({"no.such.host.invalid", 7000}, deadline_after(Seconds(0.5)));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::not_found);
  EXPECT_GT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(250));
}

TEST(Socket, a_silent_peer_and_one_that_leaves_are_told_apart) {
  const ListeningSocket listener = listen_on({}).value();
  const Fd here = connect_to({"127.0.0.1", listener.port}, deadline_after(Seconds(10.0))).value();
  Fd there(::accept(listener.fd.get(), nullptr, nullptr));
  ASSERT_GE(there.get(), 0);
  std::array<std::byte, 3> got;
  const Status silent = receive_all(here.get(), got, deadline_after(Seconds(0.02)), "the peer");
  EXPECT_EQ(silent.error().message, "the peer does not answer");
  there = Fd();
  const Status gone = receive_all(here.get(), got, deadline_after(Seconds(10.0)), "the peer");
  EXPECT_EQ(gone.error().message, "the peer closed the connection");
}

TEST(Token, is_its_hexadecimal_text_and_equals_itself_alone) {
  const RunToken a = RunToken::make().value(), b = RunToken::make().value();
  EXPECT_EQ(a.hex().size(), 32u);
  EXPECT_NE(a.hex(), b.hex());
  EXPECT_TRUE(RunToken::parse(a.hex()).value().equals(a.bytes()));
  EXPECT_FALSE(a.equals(b.bytes()));
  EXPECT_FALSE(a.equals(a.bytes().first(15)));
  for (std::size_t bit = 0; bit < 128; ++bit) {
    std::array<std::byte, 16> other;
    std::copy(a.bytes().begin(), a.bytes().end(), other.begin());
    other[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_FALSE(a.equals(other)) << bit;
  }
  const RunToken known = RunToken::parse("00112233445566778899aabbccddeeff").value();
  EXPECT_EQ(known.mark(), 0x5a9c31c90b5629fbu) << "nothing of the token: the beginning of a SHA-256";
  EXPECT_NE(a.mark(), b.mark());
  const Result<RunToken> wrong = RunToken::parse(a.hex().substr(1) + "g");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(to_string(wrong.error()).find(a.hex().substr(1, 8)), std::string::npos) << "a secret in a message";
}

}  // namespace
}  // namespace systole
