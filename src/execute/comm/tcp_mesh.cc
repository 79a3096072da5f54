#include "execute/comm/tcp_mesh.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>

#include "ground/net/token.h"

namespace systole {
namespace {

using std::chrono::steady_clock;

constexpr std::string_view kMagic{"SYSTCP\1\n", 8};
constexpr std::size_t kHello = 8 + RunToken::kSize + 12;
constexpr std::size_t kStrangers = 64;  // at once; a new one replaces the oldest
constexpr Seconds kHelloTime(5.0);
constexpr int kChannels = 2;

std::string key_of(std::int32_t rank) { return "tcp/" + std::to_string(rank); }

struct Place {
  NetAddress address;
  RunToken secret;
};

// "HOST:PORT SECRET".
Result<Place> parse_place(std::int32_t rank, std::string_view text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  Result<NetAddress> address = parse_address(text.substr(0, space));
  Result<RunToken> secret = RunToken::parse(text.substr(std::min(space + 1, text.size())));
  if (!address.ok() || !secret.ok())
    return error(ErrorKind::corrupt, "the rendezvous holds no address of rank {}", rank);
  return Place{std::move(*address), *secret};
}

struct Hello {
  std::uint32_t from = 0, to = 0, channel = 0;
};

std::array<std::byte, kHello> encode(const RunToken& secret, const Hello& hello) {
  std::array<std::byte, kHello> bytes;
  std::memcpy(bytes.data(), kMagic.data(), 8);
  std::memcpy(bytes.data() + 8, secret.bytes().data(), RunToken::kSize);
  const std::array<std::uint32_t, 3> words{hello.from, hello.to, hello.channel};
  std::memcpy(bytes.data() + 8 + RunToken::kSize, words.data(), 12);
  return bytes;
}

void set_options(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::string numbers(const std::vector<std::int32_t>& ranks) { return fmt::format("{}", fmt::join(ranks, ", ")); }

// Connects one rank to all others.
class Greeter {
 public:
  Greeter(RendezvousClient& rendezvous, std::int32_t rank, std::int32_t num_ranks, const TcpMeshOptions& options)
      : rendezvous_(rendezvous),
        rank_(rank),
        num_ranks_(num_ranks),
        options_(options),
        deadline_(deadline_after(options.connect_time)) {
    links_.data.resize(static_cast<std::size_t>(num_ranks));
    links_.control.resize(static_cast<std::size_t>(num_ranks));
    places_.resize(static_cast<std::size_t>(num_ranks));
  }

  Result<TcpLinks> greet() {
    listener_ = TRY(listen_on({options_.host, 0}));
    secret_ = TRY(RunToken::make());
    const std::string place = fmt::format("{} {}", to_string(NetAddress{options_.host, listener_.port}), secret_.hex());
    TRY(rendezvous_.set(key_of(rank_), place));
    TRY(read_places());
    for (std::int32_t peer = 0; peer < rank_; ++peer) TRY(call(peer));
    TRY(listen());
    for (std::int32_t peer = 0; peer < rank_; ++peer) TRY(hear(peer));
    return std::move(links_);
  }

 private:
  struct Stranger {
    NetStream stream;
    std::vector<std::byte> said;
    NetDeadline until;
  };

  Seconds left() const { return Seconds(std::chrono::duration<double>(deadline_ - steady_clock::now()).count()); }
  NetStream& link(std::int32_t peer, int channel) {
    return (channel == 0 ? links_.data : links_.control)[static_cast<std::size_t>(peer)];
  }

  // Reads the address of every rank; a rank without one is missing.
  Status read_places() {
    for (std::int32_t peer = 0; peer < num_ranks_; ++peer) {
      const Result<std::string> text = rendezvous_.wait(key_of(peer), std::max(left(), Seconds(0.001)));
      if (!text.ok() && text.error().kind == ErrorKind::not_found) return missing();
      if (!text.ok()) return text.error();
      places_[static_cast<std::size_t>(peer)] = TRY(parse_place(peer, *text));
    }
    return Done{};
  }

  Status missing() {
    std::vector<std::int32_t> absent;
    for (std::int32_t peer = 0; peer < num_ranks_; ++peer) {
      if (!TRY(rendezvous_.get(key_of(peer)))) absent.push_back(peer);
    }
    return not_come(absent);
  }
  Error not_come(const std::vector<std::int32_t>& absent) const {
    return error(ErrorKind::not_found, "rank {} waited {} for rank{} {}, which did not come", rank_,
                 to_string(options_.connect_time), absent.size() == 1 ? "" : "s", numbers(absent));
  }

  Status call(std::int32_t peer) {
    const Place& place = places_[static_cast<std::size_t>(peer)];
    for (int channel = 0; channel < kChannels; ++channel) {
      Result<Fd> fd = connect_to(place.address, deadline_);
      if (!fd.ok()) return error(ErrorKind::io, "rank {} cannot reach rank {}: {}", rank_, peer, fd.error().message);
      const std::string name = fmt::format("rank {}", peer);
      NetStream stream(std::move(*fd));
      stream.encrypt(options_.tls, TlsSide::client);
      // A rank answers once it has called those below it, down to rank 0, which calls nobody.
      TRY(shake_hands(stream, deadline_, name));
      const auto hello = encode(place.secret, {static_cast<std::uint32_t>(rank_), static_cast<std::uint32_t>(peer),
                                               static_cast<std::uint32_t>(channel)});
      TRY(send_all(stream, hello, deadline_, name));
      link(peer, channel) = std::move(stream);
    }
    return Done{};
  }

  // Reads the answer of a rank that we called.
  Status hear(std::int32_t peer) {
    for (int channel = 0; channel < kChannels; ++channel) {
      std::array<std::byte, RunToken::kSize> answer;
      TRY(receive_all(link(peer, channel), answer, deadline_, fmt::format("rank {}", peer)));
      if (!secret_.equals(answer)) {
        return error(ErrorKind::corrupt, "who answers at the address of rank {} is not rank {}", peer, peer);
      }
    }
    return Done{};
  }

  bool has_come(std::int32_t peer) { return link(peer, 0).is_open() && link(peer, 1).is_open(); }
  bool all_here() {
    for (std::int32_t peer = rank_ + 1; peer < num_ranks_; ++peer) {
      if (!has_come(peer)) return false;
    }
    return true;
  }

  // Listens until all ranks above ours have called. Strangers are closed, and nobody waits for one.
  Status listen() {
    while (!all_here()) {
      if (steady_clock::now() >= deadline_) {
        std::vector<std::int32_t> absent;
        for (std::int32_t peer = rank_ + 1; peer < num_ranks_; ++peer) {
          if (!has_come(peer)) absent.push_back(peer);
        }
        return not_come(absent);
      }
      std::vector<pollfd> ends{{listener_.fd.get(), POLLIN, 0}};
      for (const Stranger& stranger : strangers_)
        ends.push_back({stranger.stream.fd(), stranger.stream.awaits(POLLIN), 0});
      ::poll(ends.data(), ends.size(), 50);
      for (auto it = strangers_.begin(); it != strangers_.end();) {
        const bool keep = hear_stranger(*it) && steady_clock::now() < it->until;
        it = keep ? std::next(it) : strangers_.erase(it);
      }
      accept_some();
    }
    strangers_.clear();
    listener_.fd = Fd();
    return Done{};
  }

  // During its handshake a rank counts as a stranger.
  std::size_t most_strangers() const { return kStrangers + (options_.tls != nullptr ? links_.data.size() : 0); }

  void accept_some() {
    for (std::size_t i = 0; i < kStrangers; ++i) {
      Fd fd(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd.get() < 0) return;
      if (strangers_.size() >= most_strangers()) strangers_.pop_front();
      strangers_.push_back({NetStream(std::move(fd)), {}, deadline_after(kHelloTime)});
      strangers_.back().stream.encrypt(options_.tls, TlsSide::server);
      if (!hear_stranger(strangers_.back())) strangers_.pop_back();
    }
  }

  // False: done with it; it became a link or must be closed.
  bool hear_stranger(Stranger& stranger) {
    const Result<bool> shaken = stranger.stream.shake_hands("a stranger");
    if (!shaken.ok() || !*shaken) return shaken.ok();
    std::array<std::byte, kHello> piece;
    const ssize_t got = stranger.stream.receive(std::span(piece).first(kHello - stranger.said.size()));
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (got == 0) return false;
    stranger.said.insert(stranger.said.end(), piece.begin(), piece.begin() + got);
    if (stranger.said.size() == kHello) welcome(stranger);
    return stranger.said.size() < kHello;
  }

  void welcome(Stranger& stranger) {
    const std::span<const std::byte> said(stranger.said);
    Hello hello;
    std::memcpy(&hello, said.data() + 8 + RunToken::kSize, sizeof hello);
    const bool speaks = std::memcmp(said.data(), kMagic.data(), 8) == 0;
    const bool knows = secret_.equals(said.subspan(8, RunToken::kSize));
    const auto me = static_cast<std::uint32_t>(rank_);
    if (!knows || !speaks || hello.to != me || hello.from <= me || hello.channel >= kChannels) return;
    if (hello.from >= static_cast<std::uint32_t>(num_ranks_)) return;
    const auto peer = static_cast<std::int32_t>(hello.from);
    NetStream& place = link(peer, static_cast<int>(hello.channel));
    if (place.is_open()) return;  // a rank connects once
    set_options(stranger.stream.fd());
    const RunToken& theirs = places_[hello.from].secret;
    if (send_all(stranger.stream, theirs.bytes(), deadline_, "").ok()) place = std::move(stranger.stream);
  }

  RendezvousClient& rendezvous_;
  std::int32_t rank_, num_ranks_;
  const TcpMeshOptions& options_;
  NetDeadline deadline_;
  ListeningSocket listener_;
  RunToken secret_;
  std::vector<Place> places_;
  TcpLinks links_;
  std::list<Stranger> strangers_;
};

}  // namespace

Result<TcpLinks> connect_ranks(RendezvousClient& rendezvous, std::int32_t rank, std::int32_t num_ranks,
                               const TcpMeshOptions& options) {
  return Greeter(rendezvous, rank, num_ranks, options).greet();
}

}  // namespace systole
