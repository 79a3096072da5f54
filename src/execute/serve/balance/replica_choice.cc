#include "execute/serve/balance/replica_choice.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "ground/base/hash.h"

namespace systole {
namespace {

constexpr std::size_t kPrefixBytes = 512, kPrefixes = 4096;
constexpr std::int64_t kBytesPerToken = 4;
constexpr std::int64_t kUnsaid = 256;    // tokens of an answer without a limit
constexpr std::int64_t kMost = 1 << 20;  // of what a request says of itself
constexpr std::string_view kSpaces = " \t\r\n";

// What follows the key in JSON. In a string the quotes around a key would be escaped; a key of an inner map counts too,
// and makes an estimate wrong at worst.
std::string_view value_of(std::string_view body, std::string_view quoted) {
  for (std::size_t at = body.find(quoted); at != body.npos; at = body.find(quoted, at + 1)) {
    const std::size_t colon = body.find_first_not_of(kSpaces, at + quoted.size());
    if (colon == body.npos || body[colon] != ':') continue;
    const std::size_t value = body.find_first_not_of(kSpaces, colon + 1);
    return value == body.npos ? std::string_view() : body.substr(value);
  }
  return {};
}

std::optional<std::int64_t> count_of(std::string_view body, std::string_view quoted) {
  const std::string_view value = value_of(body, quoted);
  std::int64_t count = 0;
  const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), count);
  return failed == std::errc() && count > 0 ? std::optional(std::min(count, kMost)) : std::nullopt;
}

}  // namespace

RequestCost request_cost(std::string_view body) {
  RequestCost cost;
  std::string_view prompt;
  for (const char* key : {"\"messages\"", "\"prompt\"", "\"input\""})
    if (prompt = value_of(body, key); !prompt.empty()) break;
  if (!prompt.empty()) cost.prefix = hash64(prompt.substr(0, kPrefixBytes));
  const std::optional<std::int64_t> newer = count_of(body, "\"max_completion_tokens\"");
  const std::optional<std::int64_t> asked = newer ? newer : count_of(body, "\"max_tokens\"");
  const std::int64_t answers = count_of(body, "\"n\"").value_or(1);
  cost.tokens += static_cast<std::int64_t>(body.size()) / kBytesPerToken + answers * asked.value_or(kUnsaid);
  return cost;
}

ReplicaChoice::ReplicaChoice(int replicas) : replicas_(static_cast<std::size_t>(replicas)), prefixes_(kPrefixes) {}

std::optional<int> ReplicaChoice::choose(const RequestCost& cost, const std::vector<int>& tried) {
  const auto may_have = [&](int replica) {
    return at(replica).ready && std::ranges::find(tried, replica) == tried.end();
  };
  std::optional<int> chosen;
  for (int replica = 0; replica < static_cast<int>(replicas_.size()); ++replica) {
    const auto load = [&](int of) { return std::pair(at(of).tokens, at(of).last); };
    if (may_have(replica) && (!chosen || load(replica) < load(*chosen))) chosen = replica;
  }
  if (!chosen) return {};
  if (cost.prefix) {
    Prefix& kept = prefixes_[*cost.prefix % kPrefixes];
    const bool had_it = kept.hash == *cost.prefix && kept.replica >= 0 && may_have(kept.replica);
    if (had_it && at(kept.replica).tokens <= 2 * at(*chosen).tokens + kMostBehind) chosen = kept.replica;
    kept = {*cost.prefix, *chosen};
  }
  at(*chosen).tokens += cost.tokens;
  at(*chosen).last = ++requests_;
  return chosen;
}

void ReplicaChoice::forget(int replica) {
  for (Prefix& prefix : prefixes_)
    if (prefix.replica == replica) prefix = {};
}

}  // namespace systole
