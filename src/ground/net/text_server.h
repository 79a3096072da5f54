#pragma once
// One text over HTTP/1.1, made anew for each who asks: what collectors of metrics GET. One thread, poll, bounded
// memory: few connections at once, each of which says what it wants in a few kilobytes, within seconds, and is closed
// behind the answer.

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "ground/base/result.h"
#include "ground/net/socket.h"

namespace systole {

struct TextServerOptions {
  NetAddress bind = {};  // loopback, any free port
  std::string path = "/metrics";
  std::string type = "text/plain; version=0.0.4; charset=utf-8";
  std::function<std::string()> text = {};  // called on the server's thread
};

class TextServer {
 public:
  // Listens when it returns. Errors: not_found (no such host), busy (the port is in use), io.
  static Result<std::unique_ptr<TextServer>> start(TextServerOptions options);
  ~TextServer();  // closes every connection
  TextServer(const TextServer&) = delete;
  TextServer& operator=(const TextServer&) = delete;

  NetAddress address() const { return address_; }  // with the port that it got

 private:
  TextServer() = default;
  void run();

  TextServerOptions options_;
  NetAddress address_;
  Fd listener_, wake_;  // wake_: an eventfd, written to end the thread
  std::thread thread_;
};

}  // namespace systole
