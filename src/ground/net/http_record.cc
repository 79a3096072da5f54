#include "ground/net/http_record.h"

#include <algorithm>
#include <utility>

namespace systole {
namespace {

using std::chrono::steady_clock;

template <typename Value>
Value& at(std::vector<std::pair<std::string_view, Value>>& named, std::string_view name) {
  for (auto& [known, value] : named)
    if (known == name) return value;
  return named.emplace_back(name, Value{}).second;
}

template <typename Value>
const Value* find(const std::vector<std::pair<std::string_view, Value>>& named, std::string_view name) {
  for (const auto& [known, value] : named)
    if (known == name) return &value;
  return nullptr;
}

}  // namespace

void HttpRecord::leave(Moment now) {
  auto part = std::ranges::find(parts_, part_, &Part::name);
  if (part == parts_.end()) part = parts_.insert(parts_.end(), {part_, {}});
  part->time += now - std::exchange(since_, now);
}

void HttpRecord::enter(std::string_view part) {
  const std::lock_guard lock(mutex_);
  if (ended_ || part == part_) return;
  leave(steady_clock::now());
  part_ = part;
}

void HttpRecord::count(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (!ended_) ++at(counts_, name);
}

void HttpRecord::mark(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (!ended_) at(marks_, name) = steady_clock::now();
}

void HttpRecord::note(std::string name, Node value) {
  const std::lock_guard lock(mutex_);
  if (!ended_) notes_.push_back({std::move(name), std::move(value)});
}

HttpRecord::Moment HttpRecord::end(Moment now) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(ended_, true)) leave(std::max(now, since_));
  return since_;
}

std::vector<HttpRecord::Part> HttpRecord::parts() const {
  const std::lock_guard lock(mutex_);
  return parts_;
}

std::int64_t HttpRecord::counted(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const std::int64_t* found = find(counts_, name);
  return found == nullptr ? 0 : *found;
}

std::optional<Seconds> HttpRecord::marked(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const Moment* found = find(marks_, name);
  if (found == nullptr) return std::nullopt;
  return Seconds(std::chrono::duration<double>(*found - began_).count());
}

std::vector<Node::Entry> HttpRecord::notes() const {
  const std::lock_guard lock(mutex_);
  return notes_;
}

}  // namespace systole
