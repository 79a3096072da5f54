#pragma once
// For tests: an HTTP server on loopback that answers whatever the test says, also what is no HTTP.

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ground/base/fd.h"
#include "ground/net/socket.h"

namespace systole {

class FakeUpstream {
 public:
  struct Reply {
    std::string text;
    bool holds = false;  // the connection stays open
  };
  // On a thread of its own, one connection after the other. The request is given with its body.
  explicit FakeUpstream(std::function<Reply(const std::string& request)> answer)
      : answer_(std::move(answer)), socket_(listen_on({}).value()), stop_(::eventfd(0, EFD_CLOEXEC)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeUpstream() {
    const std::uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }
  FakeUpstream(const FakeUpstream&) = delete;

  NetAddress address() const { return {"127.0.0.1", socket_.port}; }
  int requests() const { return requests_; }
  // Closes the connections that are held.
  void hang_up() {
    const std::lock_guard lock(mutex_);
    held_.clear();
  }
  // Whether the peer of a connection that is held closes it, within 20 s.
  bool is_left() {
    std::unique_lock lock(mutex_);
    char byte = 0;
    return held_more_.wait_for(lock, std::chrono::seconds(20), [&] { return !held_.empty(); }) &&
           wait_for(held_.back().get(), POLLIN, deadline_after(Seconds(20.0))) &&
           ::recv(held_.back().get(), &byte, 1, MSG_DONTWAIT) <= 0;
  }

  static std::string whole(int status, const std::string& body, const std::string& headers = "") {
    return fmt::format("HTTP/1.1 {} X\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n{}", status,
                       headers, body.size(), body);
  }
  static std::string chunk(const std::string& text) { return fmt::format("{:x}\r\n{}\r\n", text.size(), text); }
  static constexpr const char* kEvents =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

 private:
  void serve() {
    while (true) {
      pollfd ends[] = {{stop_.get(), POLLIN, 0}, {socket_.fd.get(), POLLIN, 0}};
      ::poll(ends, 2, -1);
      if (ends[0].revents != 0) return;
      Fd connection(::accept4(socket_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (connection.get() < 0) continue;
      const std::string request = request_from(connection.get());
      if (request.empty()) continue;
      ++requests_;
      const Reply reply = answer_(request);
      const std::lock_guard lock(mutex_);  // who has the reply finds its connection held
      ::send(connection.get(), reply.text.data(), reply.text.size(), MSG_NOSIGNAL);
      if (!reply.holds) continue;
      held_.push_back(std::move(connection));
      held_more_.notify_all();
    }
  }
  static std::string request_from(int fd) {
    std::string text;
    char piece[4096];
    for (ssize_t got; (got = ::recv(fd, piece, sizeof piece, 0)) > 0;) {
      text.append(piece, static_cast<std::size_t>(got));
      const std::size_t end = text.find("\r\n\r\n"), length = text.find("Content-Length: ");
      if (end == text.npos) continue;
      const std::size_t body = length == text.npos ? 0 : static_cast<std::size_t>(std::atoll(&text[length + 16]));
      if (text.size() >= end + 4 + body) return text;
    }
    return {};
  }

  const std::function<Reply(const std::string&)> answer_;
  const ListeningSocket socket_;
  const Fd stop_;
  std::atomic<int> requests_{0};
  std::mutex mutex_;
  std::condition_variable held_more_;
  std::vector<Fd> held_;  // guarded by the mutex
  std::thread thread_;
};

}  // namespace systole
