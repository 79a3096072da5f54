#include "ground/store/testing/faulty_proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <charconv>
#include <chrono>

#include "ground/base/letter_case.h"

namespace systole {
namespace {

constexpr Seconds kPatience{20.0};  // with the server

std::string text_of(const StubRequest& request) {
  std::string text = fmt::format("{} {}{}{} HTTP/1.1\r\n", request.method, request.path,
                                 request.query.empty() ? "" : "?", request.query);
  for (const auto& [name, value] : request.headers) text += fmt::format("{}: {}\r\n", name, value);
  return text + "\r\n" + request.body;
}

bool is_list(const StubRequest& request) {
  return request.method == "GET" && (request.asks("list-type=2") || request.path.ends_with("/o"));
}

// The length of its head and half of its body; half of the head, if there is no body.
std::size_t half_of(const std::string& answer) {
  const std::size_t head = answer.find("\r\n\r\n") + 4;
  return head == answer.size() ? head / 2 : head + (answer.size() - head) / 2;
}

// Reads one answer from a connection.
class AnswerReader {
 public:
  explicit AnswerReader(int fd) : fd_(fd) {}

  // "" if the connection ends before the answer does.
  std::string read(const std::string& method) {
    while (text_.find("\r\n\r\n") == text_.npos)
      if (!more()) return "";
    const std::size_t end = text_.find("\r\n\r\n") + 4;
    const std::string head = lower_case(text_.substr(0, end));
    const std::string status = head.substr(std::min(head.size(), head.find(' ') + 1), 3);
    stays_ = head.find("\r\nconnection: close\r\n") == head.npos && head.starts_with("http/1.1");
    if (method == "HEAD" || status == "204" || status == "304") return text_;
    if (head.find("\r\ntransfer-encoding: chunked\r\n") != head.npos) return chunked(end);
    constexpr std::string_view kLength = "\r\ncontent-length: ";
    if (const std::size_t at = head.find(kLength); at != head.npos) {
      const auto size = static_cast<std::size_t>(std::atoll(head.c_str() + at + kLength.size()));
      while (text_.size() < end + size)
        if (!more()) return "";
      return text_;
    }
    stays_ = false;
    while (more()) {}
    return text_;
  }
  bool stays() const { return stays_; }
  // The connection has ended without a byte, as one does that was kept open for too long.
  bool was_closed() const { return text_.empty() && !timed_out_; }

 private:
  std::string chunked(std::size_t at) {
    while (true) {
      std::size_t line;
      while ((line = text_.find("\r\n", at)) == text_.npos)
        if (!more()) return "";
      std::size_t size = 0;
      std::from_chars(text_.data() + at, text_.data() + line, size, 16);
      at = line + 2 + size + 2;
      while (text_.size() < at)
        if (!more()) return "";
      if (size == 0) return text_;
    }
  }
  bool more() {
    // A server that sends the head and the body of an answer apart waits for our word of the head (Nagle's algorithm).
    const int at_once = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_QUICKACK, &at_once, sizeof at_once);
    timed_out_ = !wait_for(fd_, POLLIN, deadline_after(kPatience));
    if (timed_out_) return false;
    char piece[16384];
    const ssize_t got = ::recv(fd_, piece, sizeof piece, 0);
    if (got <= 0) return false;
    text_.append(piece, static_cast<std::size_t>(got));
    return true;
  }

  const int fd_;
  std::string text_;
  bool stays_ = false, timed_out_ = false;
};

}  // namespace

const char* name_of(ProxyFault fault) {
  constexpr const char* kNames[] = {"",     "refused", "reply lost", "truncated", "failed late", "twice",
                                    "late", "delayed", "503",        "429",       "stale list",  "dead"};
  return kNames[static_cast<int>(fault)];
}

FaultyProxy::FaultyProxy(int server, Plan plan, Instead instead)
    : server_(server), plan_(std::move(plan)), instead_(std::move(instead)) {
  stub_ =
      std::make_unique<StubServer>([this](const StubRequest& request, StubAnswer& answer) { handle(request, answer); });
}
FaultyProxy::~FaultyProxy() { stub_.reset(); }

std::int64_t FaultyProxy::requests() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(log_.size());
}
std::int64_t FaultyProxy::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}
std::vector<std::string> FaultyProxy::log() const {
  const std::lock_guard lock(mutex_);
  return log_;
}
void FaultyProxy::settle() {
  const std::lock_guard lock(mutex_);
  arrive(true);
}

std::optional<std::string> FaultyProxy::ask(const std::string& text, const std::string& method) {
  for (int tries = 0; tries < 2; ++tries) {  // a connection that was kept open may be closed by now
    Fd fd;
    const bool kept = !idle_.empty();
    if (kept) {
      fd = std::move(idle_.back());
      idle_.pop_back();
    } else {
      Result<Fd> made = connect_to({"127.0.0.1", server_}, deadline_after(kPatience));
      if (!made.ok()) return std::nullopt;
      fd = *std::move(made);
    }
    if (!send_all(fd.get(), std::as_bytes(std::span(text)), deadline_after(kPatience), "server").ok()) continue;
    AnswerReader reader(fd.get());
    std::string answer = reader.read(method);
    if (answer.empty() && kept && reader.was_closed()) continue;
    if (answer.empty()) return std::nullopt;
    if (reader.stays()) idle_.push_back(std::move(fd));
    const std::size_t end = answer.find("\r\n\r\n");
    const std::string own = fmt::format("http://127.0.0.1:{}/", server_);
    if (const std::size_t at = answer.find(own); at < end) answer.replace(at, own.size() - 1, url());
    return answer;
  }
  return std::nullopt;
}

void FaultyProxy::arrive(bool all) {
  std::vector<Late> due;
  for (Late& late : late_)
    if (all || --late.after < 0) due.push_back(late);
  std::erase_if(late_, [&](const Late& late) { return all || late.after < 0; });
  for (const Late& late : due) (void)ask(late.text, late.method);
}

void FaultyProxy::handle(const StubRequest& request, StubAnswer& to) {
  using enum ProxyFault;
  const std::lock_guard lock(mutex_);
  arrive(false);
  const auto number = static_cast<std::int64_t>(log_.size()) + 1;
  ProxyFault fault = plan_(request, number);
  const std::string target = request.path + (request.query.empty() ? "" : "?" + request.query);
  const auto earlier = lists_.find(target);
  if (fault == stale_list && earlier == lists_.end()) fault = none;
  log_.push_back(fmt::format("{} {} {}", request.method, target, name_of(fault)));
  if (fault != none && fault != dead) ++faults_;
  const std::string text = text_of(request);
  if (fault == late) late_.push_back({text, request.method, 2});
  if (fault == refused || fault == late || fault == dead) return;
  if (fault == unavailable) return to.whole(503, "Service Unavailable");
  if (fault == too_many) return to.whole(429, "Too Many Requests");
  if (fault == stale_list) return to.raw(earlier->second, true);
  if (const auto instead = instead_ ? instead_(request) : std::nullopt) return to.whole(200, *instead);
  if (fault == twice) (void)ask(text, request.method);
  const std::optional<std::string> answer = ask(text, request.method);
  if (answer && is_list(request)) lists_.emplace(target, *answer);
  if (!answer || fault == reply_lost) return;
  if (fault == delayed) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  if (fault == failed_late) return to.whole(503, "Service Unavailable");
  if (fault == truncated) return to.raw(answer->substr(0, half_of(*answer)), false);
  to.raw(*answer, true);
}

}  // namespace systole
