#include "execute/comm/tcp_control.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace systole {
namespace {

constexpr std::size_t kHead = 12, kLongest = 1000;
constexpr std::uint32_t kWaits = 0;
constexpr auto kKinds = static_cast<std::uint32_t>(ErrorKind::internal) + 1;

}  // namespace

TcpControl::TcpControl(std::vector<NetStream> links, std::int32_t rank) : rank_(rank) {
  for (NetStream& stream : links) links_.push_back({std::move(stream), {}, -1, false, false});
}

// A record is far smaller than a socket buffer. A peer that has not read for that long gets no more records.
void TcpControl::tell(std::uint32_t kind, std::uint32_t number, const std::string& text) {
  const std::array<std::uint32_t, 3> head{kind, number, static_cast<std::uint32_t>(std::min(text.size(), kLongest))};
  std::string record(kHead, '\0');
  std::memcpy(record.data(), head.data(), kHead);
  record += text.substr(0, kLongest);
  for (Link& link : links_) {
    if (!link.stream.is_open() || link.cut) continue;
    const ssize_t sent = link.stream.send(std::as_bytes(std::span(record)));
    link.cut = sent < 0 ? link.stream.is_encrypted() : sent != static_cast<ssize_t>(record.size());
  }
}

void TcpControl::tell_error(const Error& error) {
  const std::lock_guard lock(speaking_);
  if (told_error_) return;
  told_error_ = true;
  tell(1 + static_cast<std::uint32_t>(error.kind), static_cast<std::uint32_t>(error.code), error.message);
}

void TcpControl::tell_waiting(std::int32_t peer) {
  const std::lock_guard lock(speaking_);
  tell(kWaits, static_cast<std::uint32_t>(peer), {});
}

std::optional<Error> TcpControl::take_record(std::int32_t peer, Link& link) {
  std::array<std::uint32_t, 3> head;
  std::memcpy(head.data(), link.said.data(), kHead);
  const std::string text = link.said.substr(kHead, head[2]);
  link.said.erase(0, kHead + head[2]);
  if (head[0] == kWaits) {
    const auto waits = static_cast<std::int32_t>(head[1]);
    link.waits_for = waits >= 0 && waits < static_cast<std::int32_t>(links_.size()) ? waits : -1;
    return std::nullopt;
  }
  return error(static_cast<ErrorKind>(head[0] - 1), "{}", text).coded(error_code_of(head[1]).value_or(ErrorCode::none));
}

std::optional<Error> TcpControl::hear(std::int32_t peer) {
  Link& link = links_[static_cast<std::size_t>(peer)];
  std::array<char, 2048> piece;
  while (link.stream.is_open() && !link.ended) {
    const ssize_t got = [&] {
      const std::lock_guard lock(speaking_);
      return link.stream.receive(std::as_writable_bytes(std::span(piece)));
    }();
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) {
      link.ended = true;
      break;
    }
    link.said.append(piece.data(), static_cast<std::size_t>(got));
    while (link.said.size() >= kHead) {
      std::array<std::uint32_t, 3> head;
      std::memcpy(head.data(), link.said.data(), kHead);
      if (head[0] > kKinds || head[2] > kLongest) {
        link.ended = true;
        return error(ErrorKind::corrupt, "rank {} got from rank {} what is no report", rank_, peer);
      }
      if (link.said.size() < kHead + head[2]) break;
      if (std::optional<Error> told = take_record(peer, link)) return told;
    }
  }
  return std::nullopt;
}

std::optional<Error> TcpControl::listen() {
  for (std::int32_t peer = 0; peer < static_cast<std::int32_t>(links_.size()); ++peer) {
    if (std::optional<Error> told = hear(peer)) return told;
  }
  return std::nullopt;
}

std::optional<Error> TcpControl::last_words(std::int32_t peer) {
  // It was sent before its connections were closed, and may still be on the way.
  const Link& link = links_[static_cast<std::size_t>(peer)];
  for (int i = 0; i < 20; ++i) {
    if (std::optional<Error> told = listen()) return told;
    if (link.ended || !link.stream.is_open()) return std::nullopt;
    pollfd one{link.stream.fd(), POLLIN, 0};
    ::poll(&one, 1, 10);
  }
  return std::nullopt;
}

std::int32_t TcpControl::cause_of(std::int32_t peer) const {
  for (std::size_t steps = 0; steps < links_.size(); ++steps) {
    const std::int32_t next = links_[static_cast<std::size_t>(peer)].waits_for;
    if (next < 0 || next == rank_) return peer;  // a cycle through this rank: no cause beyond `peer`
    peer = next;
  }
  return peer;
}

}  // namespace systole
