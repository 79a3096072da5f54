#include "predict/serving/simulate.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>

#include "ground/base/error.h"

namespace systole {
namespace {

constexpr Seconds kRetryAfter{1.0};

// Of two that arrive at one time, the one that was drawn first.
struct Arrival {
  ArrivingRequest request;
  std::uint64_t order = 0;
  bool operator>(const Arrival& other) const {
    return std::pair(request.at, order) > std::pair(other.request.at, other.order);
  }
};

class Player {
 public:
  // Told of each request that ended or was refused.
  using Ended = std::function<void(Player&, const ArrivingRequest&, Seconds now, bool refused)>;

  Player(const SimulatedServer& server, Ended ended)
      : server_(server), scheduler_(server.limits), ended_(std::move(ended)) {}

  void arrive(ArrivingRequest request) { arrivals_.push({std::move(request), order_++}); }

  SimulatedServing play() {
    while (true) {
      take_arrivals();
      const ServingStep step = scheduler_.next();
      if (!step.empty()) {
        run(step);
      } else if (!arrivals_.empty()) {
        now_ = arrivals_.top().request.at;
      } else {
        CHECK(running_.empty(), "{} requests were not finished", running_.size());
        return std::move(played_);
      }
    }
  }

 private:
  struct Running {
    ArrivingRequest request;
    std::int64_t answer = 0;  // tokens that it will get
    bool begun = false;       // its prefill, which a preemption begins anew
  };

  void take_arrivals() {
    while (!arrivals_.empty() && arrivals_.top().request.at <= now_) {
      const ArrivingRequest request = arrivals_.top().request;
      arrivals_.pop();
      const std::uint64_t id = played_.requests.size();
      SimulatedRequest& times = played_.requests.emplace_back();
      times.arrived = request.at;
      times.admission = scheduler_.add({id, request.key, request.prompt, request.answer});
      if (times.admission == Admission::accepted)
        running_.try_emplace(id, Running{request, server_.answered(request)});
      else
        ended_(*this, request, now_, true);
    }
  }

  void prefill(const ServingStep::Piece& piece) {
    for (std::int64_t at = piece.begin; at < piece.end;) {
      const std::int64_t count = piece.run > 0 ? std::min(piece.run, piece.end - at) : piece.end - at;
      const Seconds took = server_.times.prefill_of(count, at);
      scheduler_.ran(count, took);
      now_ += took;
      at += count;
    }
  }

  void run(const ServingStep& step) {
    const Seconds begin = now_;
    std::int64_t tokens = 0;
    for (const ServingStep::Piece& piece : step.prefill) {
      SimulatedRequest& times = played_.requests[piece.id];
      if (!std::exchange(running_.at(piece.id).begun, true)) times.started = now_;
      prefill(piece);
      if (!piece.last) continue;
      now_ += server_.times.draw;
      if (times.answer == 0) times.first = now_;
      take_token(piece.id);
      ++tokens;
    }
    if (const std::int64_t rows = std::ssize(step.decode); rows > 0) {
      std::int64_t seen = 0;
      for (const ServingStep::Sequence& placed : step.decode)
        seen += running_.at(placed.id).request.prompt + played_.requests[placed.id].answer;
      const Seconds took = server_.times.decode_of(rows, seen);
      scheduler_.decoded(rows, took + server_.times.draw * static_cast<double>(rows));
      now_ += took;
    }
    for (const ServingStep::Sequence& placed : step.decode) {
      now_ += server_.times.draw;
      take_token(placed.id);
      ++tokens;
    }
    played_.steps.push_back({begin, now_, tokens});
  }

  void take_token(std::uint64_t id) {
    SimulatedRequest& times = played_.requests[id];
    const auto running = running_.find(id);
    if (++times.answer < running->second.answer) return;
    times.ended = now_;
    scheduler_.remove(id);
    const ArrivingRequest request = std::move(running->second.request);
    running_.erase(running);
    ended_(*this, request, now_, false);
  }

  const SimulatedServer& server_;
  ServingScheduler scheduler_;
  const Ended ended_;
  Seconds now_;
  std::uint64_t order_ = 0;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  std::map<std::uint64_t, Running> running_;  // and waiting
  SimulatedServing played_;
};

// The smallest that holds it. REQUIRES: one does.
ServingTimes::BySize::const_iterator bucket_for(const ServingTimes::BySize& times, std::int64_t size) {
  const auto bucket = std::ranges::lower_bound(times, size, {}, &std::pair<std::int64_t, Seconds>::first);
  CHECK(bucket != times.end(), "no bucket holds {}", size);
  return bucket;
}

}  // namespace

Seconds ServingTimes::prefill_of(std::int64_t prompt, std::int64_t start) const {
  const std::int64_t longest = prefill.back().first;
  Seconds time;
  for (std::int64_t done = 0; done < prompt; done += longest) {
    const auto bucket = bucket_for(prefill, std::min(longest, prompt - done));
    const auto tokens = static_cast<double>(bucket->first), before = static_cast<double>(start + done);
    time += bucket->second + prefill_seen * (tokens * (before + (tokens + 1) / 2));
  }
  return time;
}

Seconds ServingTimes::decode_of(std::int64_t sequences, std::int64_t seen) const {
  return bucket_for(decode, sequences)->second + decode_seen * static_cast<double>(seen);
}

// Prefill gives a token without a position of its own; each further one takes a position.
std::int64_t SimulatedServer::answered(const ArrivingRequest& request) const {
  return std::min(request.answer, target > 0 ? target : limits.cache - request.prompt + 1);
}

SimulatedServing simulate(const SimulatedServer& server, std::span<const ArrivingRequest> arrivals) {
  Player player(server, [](Player&, const ArrivingRequest&, Seconds, bool) {});
  for (const ArrivingRequest& request : arrivals) player.arrive(request);
  return player.play();
}

SimulatedServing simulate_users(const SimulatedServer& server, const TrafficSpec& traffic, std::int64_t users) {
  std::int64_t asked = 0;
  const auto ask = [&](Player& player, const std::string& user, Seconds at) {
    if (asked == traffic.requests) return;
    ArrivingRequest request = drawn_request(traffic, asked++);
    request.key = user;
    request.at = at;
    player.arrive(std::move(request));
  };
  const auto pause = [&] { return traffic.pause ? *traffic.pause * drawn_gap(traffic.seed, asked) : Seconds(); };
  Player player(server, [&](Player& playing, const ArrivingRequest& request, Seconds now, bool refused) {
    ask(playing, request.key, now + (refused ? kRetryAfter : pause()));
  });
  for (std::int64_t user = 0; user < users; ++user) ask(player, std::to_string(user), pause());
  return player.play();
}

}  // namespace systole
