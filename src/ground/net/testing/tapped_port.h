#pragma once
// For tests: a port of this host that forwards to another one and records all bytes.

#include <poll.h>
#include <sys/socket.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ground/net/socket.h"
#include "ground/net/token.h"

namespace systole {

class TappedPort {
 public:
  explicit TappedPort(NetAddress target) : target_(std::move(target)) {
    accepting_ = std::jthread([this](const std::stop_token& stop) { accept_all(stop); });
  }
  ~TappedPort() {
    accepting_ = {};
    for (const auto& [from, to] : pairs_) {
      ::shutdown(from.get(), SHUT_RDWR);
      ::shutdown(to.get(), SHUT_RDWR);
    }
    threads_.clear();
  }
  NetAddress address() const { return {"127.0.0.1", listener_.port}; }
  // Whether the bytes were seen, over all connections and both directions.
  bool heard(const std::string& bytes) {
    const std::lock_guard lock(mutex_);
    for (const std::string& way : ways_)
      if (way.find(bytes) != way.npos) return true;
    return false;
  }
  bool heard(const RunToken& token) {
    return heard(std::string(reinterpret_cast<const char*>(token.bytes().data()), RunToken::kSize)) ||
           heard(token.hex());
  }
  std::size_t num_bytes() {
    const std::lock_guard lock(mutex_);
    std::size_t all = 0;
    for (const std::string& way : ways_) all += way.size();
    return all;
  }

 private:
  void accept_all(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd one{listener_.fd.get(), POLLIN, 0};
      if (::poll(&one, 1, 20) <= 0) continue;
      Fd from(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
      Result<Fd> to = connect_to(target_, deadline_after(Seconds(5.0)));
      if (from.get() < 0 || !to.ok()) continue;
      pairs_.emplace_back(std::move(from), std::move(*to));
      const int a = pairs_.back().first.get(), b = pairs_.back().second.get();
      for (const auto& [in, out] : {std::pair(a, b), {b, a}}) {
        const std::lock_guard lock(mutex_);
        ways_.emplace_back();
        threads_.emplace_back([this, in, out, way = ways_.size() - 1] { pass(in, out, way); });
      }
    }
  }

  void pass(int from, int to, std::size_t way) {
    std::vector<std::byte> bytes(64 << 10);
    while (wait_for(from, POLLIN, deadline_after(Seconds(300.0)))) {
      const ssize_t got = ::recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) break;
      const std::span<const std::byte> some = std::span(bytes).first(static_cast<std::size_t>(got));
      {
        const std::lock_guard lock(mutex_);
        ways_[way].append(reinterpret_cast<const char*>(some.data()), some.size());
      }
      if (!send_all(to, some, deadline_after(Seconds(60.0)), "who is tapped").ok()) break;
    }
    ::shutdown(to, SHUT_WR);
  }

  NetAddress target_;
  ListeningSocket listener_ = listen_on({"127.0.0.1", 0}).value();
  std::mutex mutex_;
  std::vector<std::string> ways_;
  std::vector<std::pair<Fd, Fd>> pairs_;
  std::vector<std::jthread> threads_;
  std::jthread accepting_;
};

}  // namespace systole
