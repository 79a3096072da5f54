#pragma once
// For tests: a proxy on loopback between a store and a server of HTTP. Each request may fail on the way there or back,
// as its plan says; so a server that others wrote, and that has no faults to inject, gets them.
//
//   FaultyProxy proxy(server_port, [](const StubRequest&, std::int64_t n) {
//     return n == 3 ? ProxyFault::reply_lost : ProxyFault::none;
//   });
//   access.endpoint = proxy.url();
//
// The request's text is sent as it came, with its Host: signatures stay valid. Addresses of the server in the head of
// an answer (Location) become addresses of the proxy.

#include <map>
#include <mutex>
#include <optional>

#include "ground/net/testing/http_stub.h"

namespace systole {

enum class ProxyFault {
  none,
  refused,      // the connection is cut before anything is sent on
  reply_lost,   // the server has done it, and the connection is cut
  truncated,    // the server has done it; half of the answer comes
  failed_late,  // the server has done it, and the answer is 503
  twice,        // it arrives twice; the second answer counts
  late,         // the connection is cut; it arrives after two later requests
  delayed,      // by 2 ms
  unavailable,  // 503, nothing is done
  too_many,     // 429, nothing is done
  stale_list,   // the first answer that this list ever had; none, if it is the first time
  dead,         // as refused, for the client is dead: not counted
};
inline constexpr int kProxyFaults = 11;  // none and those that may be drawn
const char* name_of(ProxyFault fault);

class FaultyProxy {
 public:
  // Called with each request and its number, from 1; one at a time.
  using Plan = std::function<ProxyFault(const StubRequest&, std::int64_t)>;
  // The answer to a request that the server has no notion of; or nothing.
  using Instead = std::function<std::optional<std::string>(const StubRequest&)>;

  FaultyProxy(int server, Plan plan, Instead instead = {});
  ~FaultyProxy();
  FaultyProxy(const FaultyProxy&) = delete;

  std::string url() const { return stub_->url(); }
  std::int64_t requests() const;
  std::int64_t faults() const;           // that took place
  std::vector<std::string> log() const;  // of the requests, with their faults
  void settle();                         // all that is late arrives

 private:
  struct Late {
    std::string text, method;
    int after;  // so many requests
  };
  void handle(const StubRequest& request, StubAnswer& answer);
  // A whole answer, as it came; nothing if the server gives none.
  std::optional<std::string> ask(const std::string& text, const std::string& method);
  void arrive(bool all);

  const int server_;
  const Plan plan_;
  const Instead instead_;
  mutable std::mutex mutex_;
  std::vector<Fd> idle_;  // connections to the server
  std::map<std::string, std::string> lists_;
  std::vector<Late> late_;
  std::vector<std::string> log_;
  std::int64_t faults_ = 0;
  std::unique_ptr<StubServer> stub_;
};

}  // namespace systole
