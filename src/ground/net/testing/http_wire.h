#pragma once
// For tests: the client's side of an HTTP connection, byte by byte.

#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <span>
#include <string>
#include <utility>

#include "ground/base/letter_case.h"
#include "ground/net/socket.h"

namespace systole {

class HttpWire {
 public:
  explicit HttpWire(const NetAddress& server) : fd_(connect_to(server, soon()).value()) {}
  int fd() const { return fd_.get(); }

  // False: the server closed.
  bool say(std::string_view text) const {
    return send_all(fd_.get(), std::as_bytes(std::span(text)), soon(), "server").ok();
  }
  void end_saying() const { ::shutdown(fd_.get(), SHUT_WR); }
  void hang_up() { fd_ = Fd(); }

  // One answer with its body; a stream's chunks are joined. What came of it, if the server closes before its end.
  std::string answer(bool has_body = true) {
    std::string text = until("\r\n\r\n");
    const std::string head = lower_case(text);
    if (!has_body || text.empty()) return text;
    if (head.find("transfer-encoding: chunked") != head.npos) return text + chunks();
    const std::size_t length = head.find("content-length: ");
    return length == head.npos ? text + rest() : text + next(static_cast<std::size_t>(std::atoll(&head[length + 16])));
  }
  std::string chunk() {
    const std::string size = until("\r\n");
    const std::size_t bytes = std::strtoull(size.c_str(), nullptr, 16);
    std::string text = next(bytes + 2);
    return text.size() == bytes + 2 ? text.substr(0, bytes) : text;
  }
  std::string until(std::string_view end) {
    std::size_t at;
    while ((at = got_.find(end)) == got_.npos)
      if (!more()) return std::exchange(got_, {});
    return next(at + end.size());
  }
  std::string rest() {
    while (more()) {}
    return std::exchange(got_, {});
  }
  bool is_closed() { return rest().empty() && closed_; }  // without a further byte

 private:
  static NetDeadline soon() { return deadline_after(Seconds(20.0)); }
  std::string chunks() {
    std::string text;
    for (std::string piece = chunk(); !piece.empty(); piece = chunk()) text += piece;
    return text;
  }
  std::string next(std::size_t bytes) {
    while (got_.size() < bytes && more()) {}
    const std::string text = got_.substr(0, bytes);
    got_.erase(0, bytes);
    return text;
  }
  bool more() {
    if (closed_ || fd_.get() < 0 || !wait_for(fd_.get(), POLLIN, soon())) return false;
    char piece[4096];
    const ssize_t got = ::recv(fd_.get(), piece, sizeof piece, 0);
    closed_ = got <= 0;
    if (got > 0) got_.append(piece, static_cast<std::size_t>(got));
    return got > 0;
  }

  Fd fd_;
  std::string got_;
  bool closed_ = false;
};

inline int status_of(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 ") ? std::atoi(answer.c_str() + 9) : 0;
}

}  // namespace systole
