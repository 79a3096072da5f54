#include "ground/net/rendezvous_state.h"

#include <algorithm>

#include "ground/base/number_from.h"

namespace systole {
namespace {

RendezvousReply refused(std::string why) { return {RendezvousOutcome::refused, 0, std::move(why), {}}; }

Seconds seconds_of(std::uint32_t milliseconds) { return Seconds(static_cast<double>(milliseconds) * 1e-3); }

// The range of an ordered map's entries whose keys begin with `prefix`.
template <typename Map>
auto range_of(Map& map, const std::string& prefix) {
  const auto begin = map.lower_bound(prefix);
  auto end = begin;
  while (end != map.end() && end->first.starts_with(prefix)) ++end;
  return std::pair(begin, end);
}

bool fits_in_a_frame(const RendezvousReply& reply) {
  std::size_t bytes = 64 + reply.value.size();
  for (const RendezvousEntry& entry : reply.entries) bytes += 16 + entry.key.size() + entry.value.size();
  return bytes <= kRendezvousFrame;
}

}  // namespace

std::optional<std::string> RendezvousState::complaint(const RendezvousRequest& request) const {
  if (request.key.size() > limits_.key) return fmt::format("a key is at most {} bytes", limits_.key);
  const std::size_t longest = std::max(request.value.size(), request.expected ? request.expected->size() : 0);
  if (longest > limits_.value) return fmt::format("a value is at most {} bytes", limits_.value);
  const bool barrier = request.op == RendezvousOp::barrier;
  if (barrier && (request.number < 1 || request.number > limits_.members)) {
    return fmt::format("a barrier has 1 to {} members, not {}", limits_.members, request.number);
  }
  if (barrier && request.holder >= static_cast<std::uint64_t>(request.number)) {
    return fmt::format("member {} of a barrier of {}", request.holder, request.number);
  }
  return std::nullopt;
}

std::vector<RendezvousState::Answer> RendezvousState::ask(ClientId client, const RendezvousRequest& request,
                                                          Seconds now) {
  Answers answers;
  if (waiting_.contains(client)) {
    answers.push_back({client, refused("one request at a time")});
  } else if (std::optional<std::string> why = complaint(request)) {
    answers.push_back({client, refused(std::move(*why))});
  } else if (request.generation != 0 && request.generation != generation_) {
    answers.push_back({client, {RendezvousOutcome::stale, static_cast<std::int64_t>(generation_), {}, {}}});
  } else if (request.op == RendezvousOp::barrier) {
    arrive(client, request, now, answers);
  } else if (request.op == RendezvousOp::get) {
    wait(client, request, now, answers);
  } else {
    Answers others;
    answers.push_back({client, answer(request, now, others)});
    answers.insert(answers.end(), others.begin(), others.end());
  }
  return answers;
}

RendezvousReply RendezvousState::answer(const RendezvousRequest& request, Seconds now, Answers& others) {
  RendezvousReply reply;
  switch (request.op) {
    case RendezvousOp::set: set(request, reply, others); break;
    case RendezvousOp::add: add(request, reply, others); break;
    case RendezvousOp::compare_and_set: compare_and_set(request, reply, others); break;
    case RendezvousOp::erase: erase(request, reply); break;
    case RendezvousOp::list: list(request, reply); break;
    case RendezvousOp::lease: lease(request, reply, now); break;
    case RendezvousOp::release: {
      const auto held = leases_.find(request.key);
      if (held == leases_.end() || held->second.holder != request.holder) {
        reply.outcome = RendezvousOutcome::absent;
      } else {
        bytes_ -= held->first.size() + held->second.who.size();
        leases_.erase(held);
      }
      break;
    }
    case RendezvousOp::leases: list_leases(request, reply, now); break;
    case RendezvousOp::fence: fence(request, reply, others); break;
    case RendezvousOp::get:
    case RendezvousOp::barrier: return refused("this waits");
  }
  if (!fits_in_a_frame(reply)) return refused("the answer is longer than a frame: ask for less");
  return reply;
}

// Stores a value and answers those who wait for it. False if there is no space.
bool RendezvousState::put(const std::string& key, std::string text, std::uint64_t generation, Answers& others) {
  const auto before = values_.find(key);
  const std::size_t freed = before == values_.end() ? 0 : key.size() + before->second.text.size();
  if (bytes_ - freed + key.size() + text.size() > limits_.total) return false;
  if (before == values_.end() && values_.size() >= limits_.places) return false;
  bytes_ = bytes_ - freed + key.size() + text.size();
  values_[key] = {std::move(text), generation};
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    RendezvousReply reply;
    const RendezvousRequest& waits = it->second.request;
    if (waits.op == RendezvousOp::get && waits.key == key && has(waits, reply)) {
      others.push_back({it->first, std::move(reply)});
      it = waiting_.erase(it);
    } else {
      ++it;
    }
  }
  return true;
}

void RendezvousState::set(const RendezvousRequest& request, RendezvousReply& reply, Answers& others) {
  if (!put(request.key, request.value, request.generation, others)) reply = refused("the rendezvous is full");
}

void RendezvousState::add(const RendezvousRequest& request, RendezvousReply& reply, Answers& others) {
  const auto before = values_.find(request.key);
  const std::optional<std::int64_t> counted = before == values_.end() ? 0 : number_from(before->second.text);
  if (!counted || __builtin_add_overflow(*counted, request.number, &reply.number)) {
    reply = refused(fmt::format("'{}' holds no number to add {} to", request.key, request.number));
  } else if (!put(request.key, std::to_string(reply.number), request.generation, others)) {
    reply = refused("the rendezvous is full");
  }
}

void RendezvousState::compare_and_set(const RendezvousRequest& request, RendezvousReply& reply, Answers& others) {
  const auto before = values_.find(request.key);
  const bool there = before != values_.end();
  const bool as_expected = request.expected ? there && before->second.text == *request.expected : !there;
  if (as_expected) {
    set(request, reply, others);
    if (reply.outcome == RendezvousOutcome::ok) reply.value = request.value;
  } else {
    reply.outcome = there ? RendezvousOutcome::differs : RendezvousOutcome::absent;
    if (there) reply.value = before->second.text;
  }
}

void RendezvousState::erase(const RendezvousRequest& request, RendezvousReply& reply) {
  const auto [begin, end] = range_of(values_, request.key);
  for (auto it = begin; it != end; ++it, ++reply.number) bytes_ -= it->first.size() + it->second.text.size();
  values_.erase(begin, end);
}

void RendezvousState::list(const RendezvousRequest& request, RendezvousReply& reply) const {
  const auto [begin, end] = range_of(values_, request.key);
  for (auto it = begin; it != end; ++it) reply.entries.push_back({it->first, it->second.text, 0});
}

void RendezvousState::lease(const RendezvousRequest& request, RendezvousReply& reply, Seconds now) {
  const auto held = leases_.find(request.key);
  const std::uint32_t time = std::min(request.wait_ms, limits_.longest_wait_ms);
  if (held != leases_.end()) {
    const bool ran_out = held->second.until <= now, same = held->second.holder == request.holder;
    if (same && ran_out) {
      reply.outcome = RendezvousOutcome::absent;  // a watcher may have seen the expiry: the lease stays expired
      return;
    }
    if (!same && !ran_out) {
      reply = {RendezvousOutcome::taken, 0, held->second.who, {}};
      return;
    }
  }
  const std::size_t freed = held == leases_.end() ? 0 : request.key.size() + held->second.who.size();
  const std::size_t needed = bytes_ - freed + request.key.size() + request.value.size();
  if (needed > limits_.total || (held == leases_.end() && leases_.size() >= limits_.places)) {
    reply = refused("the rendezvous is full");
    return;
  }
  bytes_ = needed;
  leases_[request.key] = {request.holder, request.generation, request.value, now + seconds_of(time)};
}

void RendezvousState::list_leases(const RendezvousRequest& request, RendezvousReply& reply, Seconds now) const {
  const auto [begin, end] = range_of(leases_, request.key);
  for (auto it = begin; it != end; ++it) {
    const double left = (it->second.until - now).count() * 1e3;
    // Rounded up while the lease is live, so that 0 always means expired.
    const auto left_ms = static_cast<std::int64_t>(left > 0 ? std::max(left, 1.0) : left);
    reply.entries.push_back({it->first, it->second.who, left_ms});
  }
}

void RendezvousState::fence(const RendezvousRequest& request, RendezvousReply& reply, Answers& others) {
  reply.number = static_cast<std::int64_t>(generation_);
  if (request.number <= reply.number) {
    reply.outcome = RendezvousOutcome::differs;
    return;
  }
  generation_ = static_cast<std::uint64_t>(request.number);
  reply.number = request.number;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (it->second.request.generation != 0) {
      others.push_back({it->first, {RendezvousOutcome::stale, request.number, {}, {}}});
      withdraw(it->first, it->second.request);
      it = waiting_.erase(it);
    } else {
      ++it;
    }
  }
  std::erase_if(values_, [&](const auto& entry) {
    const bool gone = entry.second.generation != 0;
    if (gone) bytes_ -= entry.first.size() + entry.second.text.size();
    return gone;
  });
  std::erase_if(leases_, [&](const auto& entry) {
    const bool gone = entry.second.generation != 0;
    if (gone) bytes_ -= entry.first.size() + entry.second.who.size();
    return gone;
  });
}

bool RendezvousState::has(const RendezvousRequest& request, RendezvousReply& reply) const {
  const auto found = values_.find(request.key);
  if (found == values_.end() || (request.expected && found->second.text == *request.expected)) return false;
  reply.value = found->second.text;
  return true;
}

void RendezvousState::wait(ClientId client, const RendezvousRequest& request, Seconds now, Answers& answers) {
  RendezvousReply reply;
  if (has(request, reply)) {
    answers.push_back({client, std::move(reply)});
  } else if (request.wait_ms == 0) {
    answers.push_back({client, {RendezvousOutcome::absent, 0, {}, {}}});
  } else {
    waiting_[client] = {request, now + seconds_of(std::min(request.wait_ms, limits_.longest_wait_ms))};
  }
}

void RendezvousState::arrive(ClientId client, const RendezvousRequest& request, Seconds now, Answers& answers) {
  Barrier& barrier = barriers_[request.key];
  if (barrier.members == 0) barrier.members = request.number;
  if (barrier.members != request.number) {
    answers.push_back({client, refused(fmt::format("barrier '{}' has {} members for others and {} for member {}",
                                                   request.key, barrier.members, request.number, request.holder))});
    return;
  }
  if (!barrier.here.emplace(request.holder, client).second) {
    answers.push_back({client, {RendezvousOutcome::taken, 0, fmt::format("member {}", request.holder), {}}});
    return;
  }
  if (static_cast<std::int64_t>(barrier.here.size()) == barrier.members) {
    for (const auto& [member, who] : barrier.here) {
      answers.push_back({who, {}});
      waiting_.erase(who);
    }
    barriers_.erase(request.key);
  } else if (request.wait_ms == 0) {
    answers.push_back({client, missing(request)});
    withdraw(client, request);
  } else {
    waiting_[client] = {request, now + seconds_of(std::min(request.wait_ms, limits_.longest_wait_ms))};
  }
}

// Lists the missing members by number, up to kNamed of them.
RendezvousReply RendezvousState::missing(const RendezvousRequest& request) const {
  const Barrier& barrier = barriers_.at(request.key);
  RendezvousReply reply{
      RendezvousOutcome::missing, barrier.members - static_cast<std::int64_t>(barrier.here.size()), {}, {}};
  constexpr std::int64_t kNamed = 32;
  std::int64_t named = 0;
  for (std::int64_t member = 0; member < barrier.members && named < kNamed; ++member) {
    if (barrier.here.contains(static_cast<std::uint64_t>(member))) continue;
    reply.value += fmt::format("{}{}", named == 0 ? "" : ", ", member);
    ++named;
  }
  if (reply.number > named) reply.value += fmt::format(" and {} more", reply.number - named);
  return reply;
}

void RendezvousState::withdraw(ClientId client, const RendezvousRequest& request) {
  if (request.op != RendezvousOp::barrier) return;
  const auto barrier = barriers_.find(request.key);
  if (barrier == barriers_.end()) return;
  const auto place = barrier->second.here.find(request.holder);
  if (place != barrier->second.here.end() && place->second == client) barrier->second.here.erase(place);
  if (barrier->second.here.empty()) barriers_.erase(barrier);
}

std::vector<RendezvousState::Answer> RendezvousState::advance(Seconds now) {
  Answers answers;
  // All replies are built before any client leaves: those with the same deadline count as arrived.
  for (const auto& [client, waits] : waiting_) {
    if (waits.until > now) continue;
    const bool barrier = waits.request.op == RendezvousOp::barrier;
    answers.push_back(
        {client, barrier ? missing(waits.request) : RendezvousReply{RendezvousOutcome::absent, 0, {}, {}}});
  }
  for (const Answer& answer : answers) leave(answer.client);
  return answers;
}

void RendezvousState::leave(ClientId client) {
  const auto waits = waiting_.find(client);
  if (waits == waiting_.end()) return;
  withdraw(client, waits->second.request);
  waiting_.erase(waits);
}

std::optional<Seconds> RendezvousState::next() const {
  std::optional<Seconds> first;
  for (const auto& [client, waits] : waiting_) {
    if (!first || waits.until < *first) first = waits.until;
  }
  return first;
}

}  // namespace systole
