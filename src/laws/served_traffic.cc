#include "laws/served_traffic.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace systole::laws {
namespace {

constexpr Seconds kPatience{20.0};

}  // namespace

SimulatedServing ServedTraffic::open(const std::vector<ArrivingRequest>& arrivals) {
  for (const ArrivingRequest& request : arrivals) due_.push({request.at, request});
  return play(static_cast<std::int64_t>(arrivals.size()), [](const ArrivingRequest&, Seconds) {});
}

SimulatedServing ServedTraffic::closed(const TrafficSpec& traffic, std::int64_t users) {
  std::int64_t asked = 0;
  const auto ask = [&](const std::string& user, Seconds from) {
    if (asked == traffic.requests) return;
    const Seconds pause = traffic.pause ? *traffic.pause * drawn_gap(traffic.seed, asked) : Seconds();
    ArrivingRequest request = drawn_request(traffic, asked++);
    request.key = user;
    due_.push({from + pause, std::move(request)});
  };
  for (std::int64_t user = 0; user < users; ++user) ask(std::to_string(user), Seconds());
  return play(traffic.requests, [&](const ArrivingRequest& request, Seconds at) { ask(request.key, at); });
}

SimulatedServing ServedTraffic::play(std::int64_t count, const Ended& ended) {
  played_ = {};
  began_ = clock_.now();
  std::vector<pollfd> fds;
  for (std::int64_t done = 0; done < count;) {
    while (!due_.empty() && due_.top().at <= now()) {
      send(due_.top());
      due_.pop();
    }
    fds.clear();
    for (const Stream& stream : streams_) fds.push_back({stream.fd.get(), POLLIN, 0});
    const Seconds wait = due_.empty() ? kPatience : std::max(Seconds(), due_.top().at - now());
    timespec until{static_cast<time_t>(wait.count()), static_cast<long>(std::fmod(wait.count(), 1.0) * 1e9)};
    const int ready = ::ppoll(fds.data(), fds.size(), &until, nullptr);
    if (ready < 0) continue;  // interrupted
    CHECK(ready > 0 || !due_.empty(), "the server says nothing for {}", to_string(kPatience));
    for (std::size_t i = fds.size(); i-- > 0;) {
      if (fds[i].revents == 0 || read(streams_[i])) continue;
      const SimulatedRequest& of = played_.requests[streams_[i].index];
      CHECK(of.admission != Admission::accepted || of.answer == streams_[i].request.answer, "{} of {} tokens",
            of.answer, streams_[i].request.answer);
      ++done;
      ended(streams_[i].request, of.ended);
      streams_.erase(streams_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return std::move(played_);
}

std::string ServedTraffic::body_of(const ArrivingRequest& request) {
  std::string prompt;
  std::uniform_int_distribution<std::int32_t> token(server_.first, server_.last);
  for (std::int64_t i = 0; i < std::min(request.prompt, server_.context); ++i)
    prompt += fmt::format("{}{}", i > 0 ? "," : "", token(draw_));
  return fmt::format(R"({{"model":"{}","prompt":[{}],"max_tokens":{},"ignore_eos":true,"stream":true,)"
                     R"("logit_bias":{{"{}":100}}}})",
                     server_.model, prompt, request.answer, server_.token);
}

void ServedTraffic::send(const Due& due) {
  played_.requests.emplace_back().arrived = due.at;
  const std::string body = body_of(due.request);
  const std::string text = fmt::format(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
      "Content-Length: {}\r\n\r\n{}",
      body.size(), body);
  Stream stream{
      connect_to(server_.address, deadline_after(kPatience)).value(), played_.requests.size() - 1, due.request, {}};
  send_all(stream.fd.get(), std::as_bytes(std::span(text)), deadline_after(kPatience), "the server").value();
  streams_.push_back(std::move(stream));
}

// False: it has ended.
bool ServedTraffic::read(Stream& stream) {
  char piece[16384];
  const ssize_t got = ::recv(stream.fd.get(), piece, sizeof piece, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  SimulatedRequest& of = played_.requests[stream.index];
  if (got <= 0) return false;
  const Seconds at = now();
  stream.got.append(piece, static_cast<std::size_t>(got));
  for (std::size_t end; (end = stream.got.find('\n')) != std::string::npos; stream.got.erase(0, end + 1)) {
    const std::string_view line = std::string_view(stream.got).substr(0, end);
    if (line.starts_with("HTTP/1.1 ") && !line.starts_with("HTTP/1.1 200")) {
      CHECK(line.starts_with("HTTP/1.1 429"), "the server says {}", line);
      of.admission = Admission::queue_full;
    }
    if (!line.starts_with("data: {") || line.find(R"("text":"")") != line.npos) continue;
    if (of.answer++ == 0) of.first = of.started = at;
    of.ended = at;
  }
  return true;
}

}  // namespace systole::laws
