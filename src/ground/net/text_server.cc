#include "ground/net/text_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <vector>

#include "ground/base/os_error.h"

namespace systole {
namespace {

constexpr std::size_t kMostPeers = 16, kMostRequest = 8 << 10;
constexpr Seconds kPatience(5.0);

struct Peer {
  Fd fd;
  NetDeadline until;
  std::string in, out;    // `out`: what is left of the answer, once there is one
  bool answered = false;  // all of it went: what still comes is dropped until the other side has closed
  bool done = false;
};

std::string answer(std::string_view status, std::string_view type, std::string_view body, bool with_body) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                     type, body.size(), with_body ? body : std::string_view());
}

// To a request that is whole.
std::string answer_to(std::string_view request, const TextServerOptions& options) {
  constexpr std::string_view kPlain = "text/plain";
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const std::size_t space = line.find(' '), end = line.find(' ', std::min(space, line.size() - 1) + 1);
  if (space == line.npos || end == line.npos || !line.substr(end + 1).starts_with("HTTP/1."))
    return answer("400 Bad Request", kPlain, "this is no HTTP/1.1\n", true);
  const std::string_view method = line.substr(0, space), target = line.substr(space + 1, end - space - 1);
  if (method != "GET" && method != "HEAD") return answer("405 Method Not Allowed", kPlain, "GET it\n", true);
  if (target.substr(0, target.find('?')) != options.path)
    return answer("404 Not Found", kPlain, fmt::format("there is {}\n", options.path), method == "GET");
  return answer("200 OK", options.type, options.text(), method == "GET");
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

void receive_some(Peer& peer, const TextServerOptions& options) {
  std::array<char, 2048> piece;
  const ssize_t got = ::recv(peer.fd.get(), piece.data(), piece.size(), MSG_DONTWAIT);
  if (got < 0 && would_block()) return;
  peer.done = got <= 0;
  if (peer.done || peer.answered) return;
  peer.in.append(piece.data(), static_cast<std::size_t>(got));
  if (peer.in.find("\r\n\r\n") != peer.in.npos) {
    peer.out = answer_to(peer.in, options);
  } else if (peer.in.size() > kMostRequest) {
    peer.out = answer("431 Request Header Fields Too Large", "text/plain", "too much is asked\n", true);
  }
}

void send_some(Peer& peer) {
  const ssize_t sent = ::send(peer.fd.get(), peer.out.data(), peer.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && would_block()) return;
  if (sent > 0) peer.out.erase(0, static_cast<std::size_t>(sent));
  peer.done = sent <= 0;
  peer.answered = peer.out.empty();
  if (peer.answered) ::shutdown(peer.fd.get(), SHUT_WR);
}

}  // namespace

Result<std::unique_ptr<TextServer>> TextServer::start(TextServerOptions options) {
  ListeningSocket socket = TRY(listen_on(options.bind));
  std::unique_ptr<TextServer> server(new TextServer());
  server->address_ = {options.bind.host, socket.port};
  server->listener_ = std::move(socket.fd);
  server->options_ = std::move(options);
  server->wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (server->wake_.get() < 0) return os_error(errno, "make an event descriptor");
  server->thread_ = std::thread([server = server.get()] { server->run(); });
  return server;
}

TextServer::~TextServer() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  while (::write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {}
  thread_.join();
}

void TextServer::run() {
  std::vector<Peer> peers;
  std::vector<pollfd> watched;
  while (true) {
    watched = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Peer& peer : peers)
      watched.push_back({peer.fd.get(), static_cast<short>(peer.out.empty() ? POLLIN : POLLOUT), 0});
    ::poll(watched.data(), watched.size(), peers.empty() ? -1 : 500);
    if (watched[0].revents != 0) return;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      Peer& peer = peers[i];
      if (watched[2 + i].revents != 0 && peer.out.empty()) receive_some(peer, options_);
      if (!peer.out.empty()) send_some(peer);
      peer.done = peer.done || std::chrono::steady_clock::now() > peer.until;
    }
    std::erase_if(peers, [](const Peer& peer) { return peer.done; });
    if ((watched[1].revents & POLLIN) == 0) continue;
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.get() >= 0) {
      if (peers.size() >= kMostPeers) peers.erase(peers.begin());  // the oldest makes room for the newest
      peers.push_back({std::move(fd), deadline_after(kPatience), {}, {}});
    } else if (!would_block()) {
      ::poll(watched.data(), 1, 50);  // no descriptor is free: the listener would be ready again at once
    }
  }
}

}  // namespace systole
