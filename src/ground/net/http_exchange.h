#pragma once
// What the responders of one request share with the loop that answers it; and the mailbox by which they wake the loop,
// which outlives it. For http_server.cc and http_responder.cc alone.

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/fd.h"
#include "ground/net/http_server.h"

namespace systole {

class HttpMailbox {
 public:
  struct Mail {
    std::vector<std::shared_ptr<HttpExchange>> exchanges;  // that have something to send
    bool drain = false, stop = false;
  };
  static Result<std::shared_ptr<HttpMailbox>> make();  // Errors: io
  int fd() const { return wake_.get(); }               // readable while there is mail
  void post(std::shared_ptr<HttpExchange> exchange);
  void drain();
  void stop();
  Mail take();
  void close();  // nobody takes any more

 private:
  template <typename Change>
  void change(Change change);

  Fd wake_;
  std::mutex mutex_;
  Mail mail_;
  bool closed_ = false;
};

struct HttpExchange {
  enum class Phase { open, begun, whole, cut };  // whole: nothing follows; cut: nothing follows, and it is not whole

  std::mutex mutex;  // guards what follows
  Phase phase = Phase::open;
  std::optional<HttpResponse> head;  // until the loop takes it; without its body
  bool is_streamed = false;
  std::string body;         // until the loop takes it
  std::size_t leaving = 0;  // bytes that the loop has taken and the network has not
  bool gone = false;
  bool deaf = false;  // the client wants no body
  bool posted = false;
  std::function<void()> leave;

  // Constant.
  std::shared_ptr<HttpMailbox> mailbox;
  std::size_t most = 0;
  bool is_head_request = false;
  std::shared_ptr<HttpRecord> record;

  void* connection = nullptr;  // of the loop's thread alone; null: gone
};

}  // namespace systole
