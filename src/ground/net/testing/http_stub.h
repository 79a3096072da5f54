#pragma once
// An HTTP/1.1 server for tests: passes each request to a function, which answers, streams, or closes the connection.

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "ground/net/http_client.h"
#include "ground/net/socket.h"

namespace systole {

struct StubRequest {
  std::string method, path, query, body;
  HttpHeaders headers;  // names in lower case
  std::string header(std::string_view name) const {
    const auto found = std::ranges::find(headers, name, &HttpHeaders::value_type::first);
    return found == headers.end() ? "" : found->second;
  }
  bool asks(std::string_view part) const { return ("&" + query + "&").find(fmt::format("&{}&", part)) != query.npos; }
};

// The connection as a handler sees it. Without an answer the connection is closed.
class StubAnswer {
 public:
  StubAnswer(int fd, const std::atomic<bool>& over) : fd_(fd), over_(over) {}
  void whole(int status, const std::string& body, const HttpHeaders& headers = {}) {
    std::string text = fmt::format("HTTP/1.1 {} x\r\nContent-Length: {}\r\n", status, body.size());
    for (const auto& [name, value] : headers) text += fmt::format("{}: {}\r\n", name, value);
    goes_on = put(text + "\r\n" + body);
  }
  // Of HEAD: the size of a body that is not sent.
  void bodiless(int status, std::size_t size, const HttpHeaders& headers) {
    std::string text = fmt::format("HTTP/1.1 {} x\r\nContent-Length: {}\r\n", status, size);
    for (const auto& [name, value] : headers) text += fmt::format("{}: {}\r\n", name, value);
    goes_on = put(text + "\r\n");
  }
  // The head of a whole answer and the first `bytes` of its body; then the connection is cut.
  void cut(int status, const std::string& body, const HttpHeaders& headers, std::size_t bytes) {
    std::string text = fmt::format("HTTP/1.1 {} x\r\nContent-Length: {}\r\n", status, body.size());
    for (const auto& [name, value] : headers) text += fmt::format("{}: {}\r\n", name, value);
    put(text + "\r\n" + body.substr(0, bytes));
  }
  // An answer whose text is known.
  void raw(const std::string& text, bool stays) { goes_on = put(text) && stays; }
  // A chunked answer. Without `end` the connection is cut.
  void begin() { put("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n"); }
  bool piece(const std::string& text) { return put(fmt::format("{:x}\r\n{}\r\n", text.size(), text)); }
  void end() { goes_on = put("0\r\n\r\n"); }
  // True once `until` holds; false if the peer or the server goes first.
  bool wait(const std::function<bool()>& until = [] { return false; }) const {
    while (!over_) {
      if (until()) return true;
      pollfd gone{fd_, POLLIN | POLLRDHUP, 0};
      if (::poll(&gone, 1, 5) > 0 && (gone.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) return false;
    }
    return false;
  }
  bool goes_on = false;

 private:
  bool put(const std::string& text) {
    return send_all(fd_, std::as_bytes(std::span(text)), deadline_after(Seconds(5.0)), "peer").ok();
  }
  int fd_;
  const std::atomic<bool>& over_;
};

class StubServer {
 public:
  using Handler = std::function<void(const StubRequest&, StubAnswer&)>;
  explicit StubServer(Handler handler, int port = 0)
      : handler_(std::move(handler)), listening_(listen_on({"127.0.0.1", port}).value()), accepts_([this] { run(); }) {}
  ~StubServer() {
    over_ = true;
    accepts_.join();
    connections_.clear();
  }
  int port() const { return listening_.port; }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", port()); }

 private:
  void run() {
    while (!over_) {
      pollfd ready{listening_.fd.get(), POLLIN, 0};
      if (::poll(&ready, 1, 5) <= 0) continue;
      const int fd = ::accept4(listening_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) connections_.emplace_back([this, held = std::make_shared<Fd>(fd)] { serve(held->get()); });
    }
  }
  void serve(int fd) {
    std::string text;
    while (!over_) {
      StubRequest request;
      if (!read(fd, text, request)) return;
      StubAnswer answer(fd, over_);
      handler_(request, answer);
      if (!answer.goes_on) return;
    }
  }
  bool more(int fd, std::string& text) {
    while (!over_) {
      pollfd ready{fd, POLLIN, 0};
      if (::poll(&ready, 1, 5) <= 0) continue;
      char piece[4096];
      const ssize_t got = ::recv(fd, piece, sizeof piece, 0);
      if (got <= 0) return false;
      text.append(piece, static_cast<std::size_t>(got));
      return true;
    }
    return false;
  }
  bool read(int fd, std::string& text, StubRequest& request) {
    std::size_t head;
    while ((head = text.find("\r\n\r\n")) == text.npos)
      if (!more(fd, text)) return false;
    for (std::size_t at = text.find("\r\n") + 2; at < head; at = text.find("\r\n", at) + 2) {
      const std::string line = text.substr(at, text.find("\r\n", at) - at);
      std::string name = line.substr(0, line.find(':'));
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      request.headers.emplace_back(name, line.substr(std::min(line.find(':') + 2, line.size())));
    }
    const std::size_t space = text.find(' '), end = text.find(' ', space + 1);
    const std::string target = text.substr(space + 1, end - space - 1);
    request.method = text.substr(0, space);
    request.path = target.substr(0, target.find('?'));
    request.query = target.find('?') == target.npos ? "" : target.substr(target.find('?') + 1);
    const auto size = static_cast<std::size_t>(std::atoi(request.header("content-length").c_str()));
    while (text.size() < head + 4 + size)
      if (!more(fd, text)) return false;
    request.body = text.substr(head + 4, size);
    text.erase(0, head + 4 + size);
    return true;
  }

  Handler handler_;
  ListeningSocket listening_;
  std::atomic<bool> over_ = false;
  std::list<std::jthread> connections_;
  std::jthread accepts_;
};

}  // namespace systole
