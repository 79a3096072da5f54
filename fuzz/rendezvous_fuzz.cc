// The rendezvous (ground/net): whatever bytes arrive, parsing ends in a value that encodes to itself or in an Error;
// and whatever requests, in whatever order and at whatever times, nobody who waits is forgotten or answered twice.

#include <cstdint>
#include <cstdlib>
#include <set>
#include <span>
#include <string>

#include "ground/net/rendezvous_state.h"
#include "ground/net/rendezvous_wire.h"

namespace {

using namespace systole;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_parsing(std::span<const std::byte> input) {
  if (const Result<RendezvousRequest> request = parse_request(input); request.ok()) {
    const std::vector<std::byte> again = encode(*request);
    require(parse_request(std::span(again).subspan(4)).value() == *request);
  }
  if (const Result<RendezvousReply> reply = parse_reply(input); reply.ok()) {
    const std::vector<std::byte> again = encode(*reply);
    require(parse_reply(std::span(again).subspan(4)).value() == *reply);
  }
}

// Six bytes are a request.
RendezvousRequest request_of(std::span<const std::byte, 6> bytes) {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  RendezvousRequest request;
  request.op = static_cast<RendezvousOp>(1 + at(0) % 11);
  request.generation = at(1) % 4;
  request.holder = at(2) % 5;
  request.number = static_cast<std::int64_t>(at(3) % 6);
  request.wait_ms = at(4) % 3 * 100;
  request.key = std::string(at(5) % 3, 'k');
  request.value = std::to_string(at(3));
  if (at(5) % 4 == 3) request.expected = std::to_string(at(4));
  return request;
}

struct Desk {
  RendezvousState state{{.value = 100, .total = 200, .places = 3, .members = 4}};
  std::set<std::uint64_t> waiting;
  Seconds now{};

  void take(const std::vector<RendezvousState::Answer>& answers) {
    for (const auto& answer : answers) {
      require(waiting.erase(answer.client) == 1);  // asked, and not answered yet
      require(!encode(answer.reply).empty());
    }
    require(state.waiting() == waiting.size());
  }
};

void check_state(std::span<const std::byte> input) {
  Desk desk;
  for (; input.size() >= 7; input = input.subspan(7)) {
    const unsigned head = std::to_integer<unsigned>(input[0]);
    const std::uint64_t asker = head % 7;
    if (head >= 224) {
      desk.now += Seconds(0.05 * (head % 4));
      desk.take(desk.state.advance(desk.now));
    } else if (head >= 208) {
      desk.state.leave(asker);
      desk.waiting.erase(asker);
    } else if (!desk.waiting.contains(asker)) {
      desk.waiting.insert(asker);
      desk.take(desk.state.ask(asker, request_of(input.subspan<1, 6>()), desk.now));
    }
  }
  desk.take(desk.state.advance(desk.now + Seconds(1e6)));
  require(desk.waiting.empty());
  require(!desk.state.next().has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size));
  check_parsing(input);
  check_state(input);
  return 0;
}
