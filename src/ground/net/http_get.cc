#include "ground/net/http_get.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "ground/base/os_error.h"
#include "ground/base/shown_text.h"

namespace systole {
namespace {

constexpr std::size_t kMost = 64 << 10;

// Receives until the peer closes.
Result<std::string> receive_rest(int fd, NetDeadline deadline, const std::string& peer) {
  std::string text;
  std::array<char, 4096> piece;
  while (text.size() < kMost) {
    const ssize_t got = ::recv(fd, piece.data(), piece.size(), MSG_DONTWAIT);
    if (got == 0) return text;
    if (got > 0) {
      text.append(piece.data(), static_cast<std::size_t>(got));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return os_error(errno, "receive from", peer);
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return error(ErrorKind::io, "{} did not answer in time", peer);
    pollfd ready{fd, POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1000)) + 1);
  }
  return text;
}

}  // namespace

Result<HttpPlace> parse_http(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  const auto wrong = [&] {
    return error(ErrorKind::invalid, "'{}' is no address of the form http://HOST[:PORT]/PATH", without_passwords(url));
  };
  if (!url.starts_with(kScheme)) return wrong();
  std::string_view rest = url.substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  const std::string_view host = rest.substr(0, slash);
  if (host.empty() || url.find_first_of(" \r\n") != url.npos) return wrong();
  HttpPlace place;
  if (slash != rest.npos) place.path = std::string(rest.substr(slash));
  const bool has_port = host.find(':') != host.npos;
  Result<NetAddress> address = parse_address(has_port ? std::string(host) : fmt::format("{}:80", host));
  if (!address.ok()) return wrong();
  place.address = std::move(*address);
  return place;
}

Result<HttpAnswer> http_get(const HttpPlace& place, const std::vector<std::pair<std::string, std::string>>& headers,
                            NetDeadline deadline) {
  const std::string peer = to_string(place.address);
  const Fd fd = TRY(connect_to(place.address, deadline));
  std::string request = fmt::format("GET {} HTTP/1.0\r\nHost: {}\r\nConnection: close\r\n", place.path, peer);
  for (const auto& [name, value] : headers) request += fmt::format("{}: {}\r\n", name, value);
  request += "\r\n";
  TRY(send_all(fd.get(), std::as_bytes(std::span(request)), deadline, peer));
  const std::string text = TRY(receive_rest(fd.get(), deadline, peer));
  HttpAnswer answer;
  const std::size_t space = text.find(' '), body = text.find("\r\n\r\n");
  const bool http =
      text.starts_with("HTTP/1.") && space != text.npos && body != text.npos &&
      std::from_chars(text.data() + space + 1, text.data() + text.size(), answer.status).ec == std::errc();
  if (!http) return error(ErrorKind::corrupt, "{} answered no HTTP", peer);
  answer.body = text.substr(body + 4);
  return answer;
}

}  // namespace systole
