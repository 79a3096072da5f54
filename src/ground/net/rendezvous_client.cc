#include "ground/net/rendezvous_client.h"

#include <algorithm>
#include <cmath>
#include <thread>

namespace systole {
namespace {

std::uint32_t milliseconds(Seconds duration) {
  return static_cast<std::uint32_t>(std::clamp(std::ceil(duration.count() * 1e3), 0.0, 3'600'000.0));
}

// Sends our hello and checks the server's magic.
Status introduce(NetStream& stream, const RunToken& token, NetDeadline deadline, const std::string& peer) {
  TRY(shake_hands(stream, deadline, peer));
  TRY(send_all(stream, encode_hello(token), deadline, peer));
  std::array<std::byte, kRendezvousMagic.size()> welcome;
  TRY(receive_all(stream, welcome, deadline, peer));
  const auto is = [&welcome](std::string_view magic) {
    return std::equal(magic.begin(), magic.end(), std::as_const(welcome).begin(),
                      [](char c, std::byte b) { return static_cast<std::byte>(c) == b; });
  };
  if (is(kRendezvousMagic)) return Done{};
  if (is(kRendezvousTls)) {
    return error(ErrorKind::invalid,
                 "{} runs with ranks.tls, and this node without: its token has passed the network in the clear", peer)
        .hinted("--set ranks.tls=true here too, and a new token");
  }
  if (is(kRendezvousName)) {
    return error(ErrorKind::unsupported, "{} is of another version of systole", peer)
        .hinted("the same systole on all nodes: systole --version");
  }
  return error(ErrorKind::corrupt, "another program listens where {} should be", peer)
      .hinted("--rendezvous HOST:PORT: the same on all nodes, with a port that nothing else has");
}

// An error that explains why a server closed or did not speak TLS.
Error refused(const Error& why, bool tls, const std::string& peer) {
  if (tls) {
    return error(ErrorKind::invalid, "this node runs with ranks.tls, and {} without, or another program listens there",
                 peer)
        .hinted("--set ranks.tls=true where it leads too, or false on all nodes");
  }
  return error(ErrorKind::invalid, "{} without answering our token", why.message)
      .hinted("all processes of a run need the token of that run");
}

}  // namespace

Result<RendezvousClient> RendezvousClient::connect(const NetAddress& server, const RunToken& token,
                                                   RendezvousClientOptions options) {
  RendezvousClient client;
  client.options_ = options;
  client.peer_ = "the rendezvous at " + to_string(server);
  const NetDeadline deadline = deadline_after(options.connect_time);
  const std::shared_ptr<const Tls> tls = options.tls ? TRY(Tls::of(token)) : nullptr;
  constexpr int kTries = 3;  // a crowd of strangers may have evicted us before our hello was read
  Status greeted = Done{};
  for (int i = 0; i < kTries; ++i) {
    client.stream_ = NetStream(TRY(connect_to(server, deadline)));
    client.stream_.encrypt(tls, TlsSide::client);
    greeted = introduce(client.stream_, token, deadline, client.peer_);
    if (greeted.ok()) return client;
    if (greeted.error().kind != ErrorKind::io || std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20 << i));
  }
  if (options.tls && greeted.error().kind == ErrorKind::corrupt) return refused(greeted.error(), true, client.peer_);
  if (greeted.error().kind != ErrorKind::io) return std::move(greeted).error();
  if (std::chrono::steady_clock::now() >= deadline)
    return error(ErrorKind::io, "{} takes connections and says nothing: another program may listen there",
                 client.peer_);
  return refused(greeted.error(), options.tls, client.peer_);
}

Result<RendezvousReply> RendezvousClient::exchange(const RendezvousRequest& request) {
  const NetDeadline deadline =
      deadline_after(Seconds(static_cast<double>(request.wait_ms) * 1e-3) + options_.answer_time);
  TRY(send_all(stream_, encode(request), deadline, peer_));
  std::array<std::byte, 4> header;
  TRY(receive_all(stream_, header, deadline, peer_));
  const std::optional<std::size_t> length = frame_length(header);
  if (!length) return error(ErrorKind::corrupt, "{} sent a frame of an impossible length", peer_);
  std::vector<std::byte> payload(*length);
  TRY(receive_all(stream_, payload, deadline, peer_));
  return parse_reply(payload);
}

Result<RendezvousReply> RendezvousClient::ask(RendezvousRequest request) {
  if (broken_) return *broken_;
  if (request.key.size() + request.value.size() + (request.expected ? request.expected->size() : 0) + 64 >
      kRendezvousFrame) {
    return error(ErrorKind::invalid, "a request to the rendezvous is at most {} bytes", kRendezvousFrame);
  }
  request.generation = request.op == RendezvousOp::fence ? 0 : options_.generation;
  Result<RendezvousReply> reply = exchange(request);
  if (!reply.ok()) {
    broken_ = reply.error();
    stream_ = NetStream();
    return reply;
  }
  if (reply->outcome == RendezvousOutcome::stale) {
    return error(ErrorKind::interrupted, "generation {} is over: generation {} runs", options_.generation,
                 reply->number);
  }
  if (reply->outcome == RendezvousOutcome::refused) {
    return error(ErrorKind::invalid, "{} refused '{}': {}", peer_, request.key, reply->value);
  }
  return reply;
}

Status RendezvousClient::set(const std::string& key, std::string value) {
  TRY(ask({.op = RendezvousOp::set, .key = key, .value = std::move(value)}));
  return Done{};
}

Result<std::optional<std::string>> RendezvousClient::get(const std::string& key) {
  RendezvousReply reply = TRY(ask({.op = RendezvousOp::get, .key = key}));
  if (reply.outcome == RendezvousOutcome::absent) return std::optional<std::string>();
  return std::optional<std::string>(std::move(reply.value));
}

Result<std::string> RendezvousClient::wait(const std::string& key, Seconds longest, std::optional<std::string> unlike) {
  RendezvousReply reply =
      TRY(ask({.op = RendezvousOp::get, .wait_ms = milliseconds(longest), .key = key, .expected = std::move(unlike)}));
  if (reply.outcome == RendezvousOutcome::ok) return std::move(reply.value);
  return error(ErrorKind::not_found, "nobody wrote '{}' within {}", key, to_string(longest));
}

Result<std::int64_t> RendezvousClient::add(const std::string& key, std::int64_t amount) {
  return TRY(ask({.op = RendezvousOp::add, .number = amount, .key = key})).number;
}

Result<RendezvousSwap> RendezvousClient::compare_and_set(const std::string& key, std::optional<std::string> expected,
                                                         std::string desired) {
  RendezvousReply reply = TRY(ask(
      {.op = RendezvousOp::compare_and_set, .key = key, .value = std::move(desired), .expected = std::move(expected)}));
  RendezvousSwap swap;
  swap.swapped = reply.outcome == RendezvousOutcome::ok;
  if (reply.outcome != RendezvousOutcome::absent) swap.value = std::move(reply.value);
  return swap;
}

Result<std::int64_t> RendezvousClient::erase(const std::string& prefix) {
  return TRY(ask({.op = RendezvousOp::erase, .key = prefix})).number;
}

Result<std::vector<RendezvousEntry>> RendezvousClient::list(const std::string& prefix) {
  return TRY(ask({.op = RendezvousOp::list, .key = prefix})).entries;
}

Status RendezvousClient::barrier(const std::string& name, std::int64_t members, std::int64_t member, Seconds longest) {
  const RendezvousReply reply = TRY(ask({.op = RendezvousOp::barrier,
                                         .holder = static_cast<std::uint64_t>(member),
                                         .number = members,
                                         .wait_ms = milliseconds(longest),
                                         .key = name}));
  if (reply.outcome == RendezvousOutcome::ok) return Done{};
  if (reply.outcome == RendezvousOutcome::taken) {
    return error(ErrorKind::exists, "{} is at barrier '{}' already", reply.value, name)
        .hinted("two processes were started as the same one");
  }
  return error(ErrorKind::not_found, "{} of {} did not come to barrier '{}' within {}: {}", reply.number, members, name,
               to_string(longest), reply.value);
}

Status RendezvousClient::lease(const std::string& name, std::uint64_t holder, Seconds time_to_live, std::string who) {
  const RendezvousReply reply = TRY(ask({.op = RendezvousOp::lease,
                                         .holder = holder,
                                         .wait_ms = milliseconds(time_to_live),
                                         .key = name,
                                         .value = std::move(who)}));
  if (reply.outcome == RendezvousOutcome::ok) return Done{};
  if (reply.outcome == RendezvousOutcome::taken) {
    return error(ErrorKind::exists, "'{}' is there already: {}", name, reply.value);
  }
  return error(ErrorKind::not_found, "the lease of '{}' ran out before it was renewed", name);
}

Status RendezvousClient::release(const std::string& name, std::uint64_t holder) {
  const RendezvousReply reply = TRY(ask({.op = RendezvousOp::release, .holder = holder, .key = name}));
  if (reply.outcome == RendezvousOutcome::ok) return Done{};
  return error(ErrorKind::not_found, "'{}' is not held by us", name);
}

Result<std::vector<RendezvousLease>> RendezvousClient::leases(const std::string& prefix) {
  RendezvousReply reply = TRY(ask({.op = RendezvousOp::leases, .key = prefix}));
  std::vector<RendezvousLease> found;
  for (RendezvousEntry& entry : reply.entries) {
    found.push_back({std::move(entry.key), std::move(entry.value), Seconds(static_cast<double>(entry.number) * 1e-3)});
  }
  return found;
}

Status RendezvousClient::fence(std::uint64_t generation) {
  const RendezvousReply reply =
      TRY(ask({.op = RendezvousOp::fence, .number = static_cast<std::int64_t>(generation), .key = "generation"}));
  if (reply.outcome == RendezvousOutcome::ok) return Done{};
  return error(ErrorKind::exists, "generation {} cannot begin: generation {} runs", generation, reply.number);
}

}  // namespace systole
