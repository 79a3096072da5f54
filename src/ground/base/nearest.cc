#include "ground/base/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace systole {
namespace {

constexpr std::size_t kLongest = 64;  // longer words are compared by their first letters
constexpr std::size_t kListed = 12;

std::string folded(std::string_view name) {
  std::string plain(name.substr(0, kLongest));
  for (char& c : plain) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return plain;
}

// Up to three that share the longest beginning with the name: two thirds of it and three letters at least.
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

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Row i holds the distances of a's first i letters to each prefix of b; a swap looks two rows back.
  std::vector<int> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) next[j] = std::min(next[j], before[j - 2] + 1);
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row[b.size()];
}

std::vector<std::string> nearest(std::string_view name, std::span<const std::string> names, std::size_t count) {
  std::vector<std::pair<int, std::string>> near;
  const std::string wanted = folded(name);
  for (const std::string& candidate : names) {
    if (candidate == name) continue;
    const std::string plain = folded(candidate);
    const int distance = edit_distance(wanted, plain);
    const std::size_t longer = std::max(wanted.size(), plain.size());
    const auto allowed = static_cast<int>(std::max<std::size_t>(1, longer / 3));
    const bool something_is_left = static_cast<std::size_t>(distance) < longer;
    if (distance <= allowed && something_is_left) near.emplace_back(distance, candidate);
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (near.size() > count) near.resize(count);
  std::vector<std::string> found;
  for (auto& [distance, candidate] : near) found.push_back(std::move(candidate));
  return found;
}

std::string nearest_hint(std::string_view name, std::span<const std::string> names) {
  std::vector<std::string> near = nearest(name, names);
  if (near.empty()) near = beginning_alike(name, names);
  if (!near.empty()) return fmt::format("did you mean '{}'?", fmt::join(near, "' or '"));
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
