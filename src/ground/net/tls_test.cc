// TLS streams between threads, over socket pairs and through a wire that is recorded, slow or altered.
#include "ground/net/tls.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include "ground/net/stream.h"

namespace systole {
namespace {

using std::chrono::steady_clock;
using Raw = std::vector<std::byte>;

NetDeadline soon() { return deadline_after(Seconds(20.0)); }
std::shared_ptr<const Tls> tls_of(const RunToken& token) { return Tls::of(token).value(); }
std::span<const std::byte> raw(std::string_view text) { return std::as_bytes(std::span(text)); }

std::pair<Fd, Fd> sockets() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

struct Pair {
  NetStream client, server;
};

// Both handshakes concurrently, as two processes would.
std::pair<Status, Status> connect(Pair& pair, const std::shared_ptr<const Tls>& client,
                                  const std::shared_ptr<const Tls>& server) {
  pair.client.encrypt(client, TlsSide::client);
  pair.server.encrypt(server, TlsSide::server);
  Status there = Done{};
  std::jthread other([&] { there = shake_hands(pair.server, soon(), "the client"); });
  Status here = shake_hands(pair.client, soon(), "the server");
  if (!here.ok()) pair.client = NetStream();
  other.join();
  return {std::move(here), std::move(there)};
}

Pair connected(std::pair<Fd, Fd> ends = sockets(),
               const std::shared_ptr<const Tls>& tls = tls_of(RunToken::make().value())) {
  Pair pair{NetStream(std::move(ends.first)), NetStream(std::move(ends.second))};
  const auto [client, server] = connect(pair, tls, tls);
  EXPECT_TRUE(client.ok()) << client.error().message;
  EXPECT_TRUE(server.ok()) << server.error().message;
  return pair;
}

std::byte letter(std::uint64_t seed, std::size_t at) {
  return static_cast<std::byte>((seed + at) * 0x9e3779b97f4a7c15ULL >> 56);
}

// Sends and receives `size` bytes at once, in runs and pieces of many lengths, with one thread and one poll().
void exchange(NetStream& stream, std::size_t size, std::uint64_t seed, std::uint64_t theirs) {
  Raw ours(size);
  for (std::size_t i = 0; i < size; ++i) ours[i] = letter(seed, i);
  std::mt19937 random(static_cast<unsigned>(seed));
  Raw into(100'000);
  std::size_t sent = 0, got = 0;
  bool holds = true;  // received exactly what was sent
  const NetDeadline until = deadline_after(Seconds(120.0));
  while ((sent < size || got < size) && holds && steady_clock::now() < until) {
    bool any = false;
    if (sent < size) {
      std::vector<iovec> runs;
      // After EAGAIN the same bytes are sent again, but split differently.
      for (std::size_t at = sent; at < size && runs.size() < 64;) {
        const std::size_t piece = std::min<std::size_t>(size - at, 1 + random() % 40'000);
        runs.push_back({ours.data() + at, piece});
        at += piece;
        if (at - sent > 100'000) break;
      }
      const ssize_t n = stream.send(runs);
      ASSERT_TRUE(n > 0 || errno == EAGAIN) << errno;
      sent += n > 0 ? static_cast<std::size_t>(n) : 0;
      any = n > 0;
    }
    if (got < size) {
      const std::size_t piece = std::min<std::size_t>(size - got, 1 + random() % into.size());
      const ssize_t n = stream.receive(std::span(into).first(piece));
      ASSERT_TRUE(n > 0 || errno == EAGAIN) << n << " " << errno;
      for (ssize_t i = 0; i < n; ++i)
        holds = holds && into[static_cast<std::size_t>(i)] == letter(theirs, got + static_cast<std::size_t>(i));
      got += n > 0 ? static_cast<std::size_t>(n) : 0;
      any = any || n > 0;
    }
    if (any || stream.holds_bytes()) continue;
    const int events = (sent < size ? POLLOUT : 0) | (got < size ? POLLIN : 0);
    pollfd one{stream.fd(), stream.awaits(static_cast<short>(events)), 0};
    ::poll(&one, 1, 1000);
  }
  EXPECT_TRUE(holds);
  EXPECT_EQ(sent, size);
  EXPECT_EQ(got, size);
}

void exchange_both(Pair& pair, std::size_t size) {
  std::jthread other([&] { exchange(pair.server, size, 2, 1); });
  exchange(pair.client, size, 1, 2);
}

// A wire between two sockets that records the traffic, in pieces of at most `piece` bytes, each modified by `alter`.
class Wire {
 public:
  explicit Wire(std::size_t piece, std::function<void(std::size_t at, Raw& bytes)> alter = {})
      : piece_(piece), alter_(std::move(alter)) {
    auto [a, b] = sockets();
    auto [c, d] = sockets();
    ends_ = {std::move(a), std::move(d)};
    inner_ = {std::move(b), std::move(c)};
    threads_.emplace_back([this] { pass(inner_.first.get(), inner_.second.get()); });
    threads_.emplace_back([this] { pass(inner_.second.get(), inner_.first.get()); });
  }
  ~Wire() {
    ::shutdown(inner_.first.get(), SHUT_RDWR);
    ::shutdown(inner_.second.get(), SHUT_RDWR);
  }
  std::pair<Fd, Fd> ends() { return std::move(ends_); }
  std::string heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }

 private:
  void pass(int from, int to) {
    Raw bytes(piece_);
    for (std::size_t at = 0;;) {
      bytes.resize(piece_);
      const ssize_t got = ::recv(from, bytes.data(), bytes.size(), 0);
      if (got <= 0) break;
      bytes.resize(static_cast<std::size_t>(got));
      if (alter_) alter_(at, bytes);
      at += bytes.size();
      {
        const std::lock_guard lock(mutex_);
        heard_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      }
      if (::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) break;
    }
    ::shutdown(to, SHUT_WR);
  }

  std::size_t piece_;
  std::function<void(std::size_t, Raw&)> alter_;
  std::pair<Fd, Fd> ends_, inner_;
  std::mutex mutex_;
  std::string heard_;
  std::vector<std::jthread> threads_;
};

std::string raw_text(const RunToken& token) {
  return {reinterpret_cast<const char*>(token.bytes().data()), RunToken::kSize};
}

TEST(TlsStream, much_at_once_both_ways) {
  Pair pair = connected();
  exchange_both(pair, std::size_t{64} << 20);
}

TEST(TlsStream, a_plain_one_does_the_same) {
  auto [a, b] = sockets();
  Pair pair{NetStream(std::move(a)), NetStream(std::move(b))};
  exchange_both(pair, std::size_t{8} << 20);
}

// Keys are limited to some number of records; both sides update them while sending, without deadlock.
TEST(TlsStream, new_keys_are_taken_on_the_way) {
  Pair pair = connected(sockets(), Tls::of(RunToken::make().value(), 3).value());
  exchange_both(pair, std::size_t{8} << 20);
}

TEST(TlsStream, bytes_may_come_a_few_at_a_time) {
  Wire wire(7);
  Pair pair = connected(wire.ends());
  exchange_both(pair, 100'000);
}

TEST(TlsStream, what_is_decrypted_and_not_taken_is_told) {
  Pair pair = connected();
  ASSERT_TRUE(send_all(pair.client, raw("0123456789"), soon(), "server").ok());
  std::array<std::byte, 4> some;
  ASSERT_TRUE(receive_all(pair.server, some, soon(), "client").ok());
  pollfd one{pair.server.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&one, 1, 0), 0) << "the socket itself is empty";
  EXPECT_TRUE(pair.server.holds_bytes());
  std::array<std::byte, 6> rest;
  ASSERT_TRUE(receive_all(pair.server, rest, soon(), "client").ok());
  EXPECT_FALSE(pair.server.holds_bytes());
  EXPECT_EQ(pair.server.receive(some), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(TlsStream, neither_the_token_nor_what_is_sent_passes_readable) {
  const std::string tensor = "a tensor with a pattern that nobody else has";
  for (const bool encrypted : {false, true}) {
    const RunToken token = RunToken::make().value();
    Wire wire(4096);
    auto [a, b] = wire.ends();
    Pair pair{NetStream(std::move(a)), NetStream(std::move(b))};
    if (encrypted) {
      const auto [client, server] = connect(pair, tls_of(token), tls_of(token));
      ASSERT_TRUE(client.ok() && server.ok());
    }
    ASSERT_TRUE(send_all(pair.client, token.bytes(), soon(), "server").ok());
    ASSERT_TRUE(send_all(pair.client, raw(tensor), soon(), "server").ok());
    Raw got(RunToken::kSize + tensor.size());
    ASSERT_TRUE(receive_all(pair.server, got, soon(), "client").ok());
    EXPECT_TRUE(std::ranges::equal(std::span(got).subspan(RunToken::kSize), raw(tensor)));
    for (const std::string& secret : {raw_text(token), tensor})
      EXPECT_EQ(wire.heard().find(secret) == std::string::npos, encrypted);
    EXPECT_EQ(wire.heard().find(token.hex()), std::string::npos);
  }
}

TEST(TlsStream, another_token_is_refused_by_both) {
  auto [a, b] = sockets();
  Pair pair{NetStream(std::move(a)), NetStream(std::move(b))};
  const auto [client, server] = connect(pair, tls_of(RunToken::make().value()), tls_of(RunToken::make().value()));
  ASSERT_FALSE(client.ok());
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(client.error().kind, ErrorKind::invalid) << client.error().message;
  EXPECT_EQ(client.error().message, "the server holds the key of another token");
  EXPECT_NE(to_string(client.error()).find("hint: "), std::string::npos);
  EXPECT_EQ(server.error().kind, ErrorKind::invalid) << server.error().message;
}

TEST(TlsStream, what_was_altered_on_the_way_is_not_believed) {
  Wire wire(4096, [](std::size_t at, Raw& bytes) {
    if (at + bytes.size() > 20'000) bytes.back() ^= std::byte{1};  // long after the handshake
  });
  Pair pair = connected(wire.ends());
  std::jthread sender([&] { (void)send_all(pair.client, Raw(100'000), deadline_after(Seconds(2.0)), "server"); });
  Raw got(100'000);
  const Status status = receive_all(pair.server, got, soon(), "client");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "client sent what was altered on the way, or is no TLS");
  pair.server = NetStream();
}

// The other end sends `text` and, if `leaves`, closes.
Status told_by(std::string_view text, bool leaves, TlsSide side) {
  auto [a, b] = sockets();
  NetStream stream(std::move(a));
  stream.encrypt(tls_of(RunToken::make().value()), side);
  (void)!::send(b.get(), text.data(), text.size(), MSG_NOSIGNAL);
  if (leaves) b = Fd();
  const Fd stays = std::move(b);
  return shake_hands(stream, deadline_after(Seconds(0.3)), "it");
}

TEST(TlsStream, a_peer_that_is_none_is_named_by_what_it_does) {
  for (const TlsSide side : {TlsSide::client, TlsSide::server}) {
    const Status garbage = told_by("SSH-2.0-OpenSSH_9.2\r\nand more of the kind, as much as a record has", false, side);
    ASSERT_FALSE(garbage.ok());
    EXPECT_EQ(garbage.error().kind, ErrorKind::corrupt);
    EXPECT_EQ(garbage.error().message, "it says what is no TLS 1.3");

    const auto began = steady_clock::now();
    const Status silent = told_by("", false, side);
    ASSERT_FALSE(silent.ok());
    EXPECT_EQ(silent.error().kind, ErrorKind::io);
    EXPECT_EQ(silent.error().message, "it does not answer");
    EXPECT_LT(steady_clock::now() - began, std::chrono::seconds(10));

    const Status gone = told_by({"\x16\x03\x01\x02", 4}, true, side);  // killed in the middle of a record
    ASSERT_FALSE(gone.ok());
    EXPECT_EQ(gone.error().kind, ErrorKind::io);
    EXPECT_EQ(gone.error().message, "it closed the connection");
  }
}

TEST(TlsStream, an_end_is_heard_with_a_last_word_and_without) {
  for (const bool says_so : {true, false}) {
    Pair pair = connected();
    ASSERT_TRUE(send_all(pair.client, raw("all"), soon(), "server").ok());
    if (says_so) pair.client.end();
    pair.client = NetStream();
    std::array<std::byte, 3> got;
    EXPECT_TRUE(receive_all(pair.server, got, soon(), "client").ok());
    EXPECT_EQ(pair.server.receive(got), 0);
    EXPECT_EQ(pair.server.receive(got), 0);
    ssize_t sent = 0;  // to a closed peer: an error, not a signal
    for (int i = 0; i < 100 && sent >= 0; ++i) sent = pair.server.send(raw("late"));
    EXPECT_EQ(sent, -1);
    EXPECT_EQ(errno, EPIPE);
  }
}

}  // namespace
}  // namespace systole
