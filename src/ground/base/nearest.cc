#include "ground/base/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace systole {
namespace {

constexpr std::size_t kLongest = 64;  // longer words are compared by their prefixes of this length
constexpr std::size_t kListed = 12;

std::string folded(std::string_view name) {
  std::string plain(name.substr(0, kLongest));
  for (char& c : plain) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return plain;
}

// Up to three names that share the longest prefix with `name`: at least two thirds of it and three letters.
std::vector<std::string> beginning_alike(std::string_view name, std::span<const std::string> names) {
  const std::string wanted = folded(name);
  std::size_t most = std::max<std::size_t>(3, (2 * wanted.size() + 2) / 3);
  std::vector<std::string> found;
  for (const std::string& candidate : names) {
    if (candidate == name) continue;
    const std::string plain = folded(candidate);
    const auto shared = static_cast<std::size_t>(std::ranges::mismatch(wanted, plain).in1 - wanted.begin());
    if (shared > most) found.clear();
    if (shared >= most) found.push_back(candidate), most = shared;
  }
  if (found.size() > 3) found.resize(3);
  return found;
}

// The exact distance up to `limit`, otherwise some number above it. Ukkonen's band: cells further than `limit` from the
// diagonal exceed it and are skipped; so are the rows after two rows that exceed it.
int distance_within(std::string_view a, std::string_view b, int limit) {
  const auto n = static_cast<int>(a.size()), m = static_cast<int>(b.size()), beyond = limit + 1;
  if (std::abs(n - m) > limit) return beyond;
  // Row i holds the distances of a's first i letters to each prefix of b; a swap looks two rows back.
  std::vector<int> before(b.size() + 1, beyond), row(b.size() + 1), next(b.size() + 1, beyond);
  std::iota(row.begin(), row.end(), 0);
  int least = 0;  // minimum of `row`
  for (int i = 1; i <= n; ++i) {
    const int low = std::max(1, i - limit), high = std::min(m, i + limit);
    next[low - 1] = low == 1 ? i : beyond;
    int smallest = next[low - 1];
    for (int j = low; j <= high; ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) next[j] = std::min(next[j], before[j - 2] + 1);
      smallest = std::min(smallest, next[j]);
    }
    if (smallest > limit && least >= limit) return beyond;
    least = smallest;
    std::swap(before, row);
    std::swap(row, next);
  }
  return row[m];
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  return distance_within(a, b, static_cast<int>(std::max(a.size(), b.size())));
}

std::vector<std::string> nearest(std::string_view name, std::span<const std::string> names, std::size_t count) {
  std::vector<std::pair<int, std::string>> near;
  const std::string wanted = folded(name);
  for (const std::string& candidate : names) {
    if (count == 0) break;
    if (candidate == name) continue;
    const std::string plain = folded(candidate);
    const auto longer = static_cast<int>(std::max(wanted.size(), plain.size()));
    auto allowed = std::min(std::max(1, longer / 3), longer - 1);                  // at least one letter is shared
    if (near.size() == count) allowed = std::min(allowed, near.back().first - 1);  // on a tie the earlier name wins
    const int distance = distance_within(wanted, plain, allowed);
    if (distance > allowed) continue;
    const auto behind = std::ranges::upper_bound(near, distance, {}, &std::pair<int, std::string>::first);
    near.emplace(behind, distance, candidate);
    if (near.size() > count) near.pop_back();
  }
  std::vector<std::string> found;
  for (auto& [distance, candidate] : near) found.push_back(std::move(candidate));
  return found;
}

std::optional<std::string> meant_hint(std::string_view name, std::span<const std::string> names) {
  std::vector<std::string> near = nearest(name, names);
  if (near.empty()) near = beginning_alike(name, names);
  if (near.empty()) return std::nullopt;
  return fmt::format("did you mean '{}'?", fmt::join(near, "' or '"));
}

std::string nearest_hint(std::string_view name, std::span<const std::string> names) {
  if (std::optional<std::string> meant = meant_hint(name, names)) return *std::move(meant);
  std::vector<std::string_view> shown;
  bool more = false;
  for (const std::string& candidate : names) {
    if (candidate == name) continue;
    more = shown.size() == kListed;
    if (more) break;
    shown.push_back(candidate);
  }
  return shown.empty() ? std::string() : fmt::format("valid: {}{}", fmt::join(shown, ", "), more ? ", ..." : "");
}

}  // namespace systole
