#pragma once
// Traffic for a server over HTTP, from one thread: requests at their times, or users who ask again. What it measures has
// the form of what a plan plays (predict/serving/simulate.h), so that both are summed up alike.

#include <functional>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/clock.h"
#include "ground/net/socket.h"
#include "predict/serving/simulate.h"

namespace systole::laws {

class ServedTraffic {
 public:
  struct Server {
    NetAddress address;
    std::string model;
    std::int64_t context = 0;
    std::int32_t token = 0;            // that every answer repeats: a whole character
    std::int32_t first = 0, last = 0;  // tokens of prompts are drawn from these
  };
  // `draw`: of the prompts' tokens, another for each traffic of a server, whose cache knows the prompts that it has seen.
  ServedTraffic(Server server, Clock& clock, std::mt19937_64& draw)
      : server_(std::move(server)), clock_(clock), draw_(draw) {}

  // As simulate, and as simulate_users.
  SimulatedServing open(const std::vector<ArrivingRequest>& arrivals);
  SimulatedServing closed(const TrafficSpec& traffic, std::int64_t users);

 private:
  struct Due {
    Seconds at;
    ArrivingRequest request;
    bool operator<(const Due& other) const { return at > other.at; }
  };
  struct Stream {
    Fd fd;
    std::size_t index = 0;  // of its request
    ArrivingRequest request;
    std::string got;  // since its last whole line
  };
  using Ended = std::function<void(const ArrivingRequest&, Seconds now)>;

  Seconds now() const { return clock_.now() - began_; }
  SimulatedServing play(std::int64_t count, const Ended& ended);
  void send(const Due& due);
  bool read(Stream& stream);
  std::string body_of(const ArrivingRequest& request);

  const Server server_;
  Clock& clock_;
  std::mt19937_64& draw_;
  Seconds began_;
  std::priority_queue<Due> due_;
  std::vector<Stream> streams_;
  SimulatedServing played_;
};

}  // namespace systole::laws
