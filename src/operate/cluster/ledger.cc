#include "operate/cluster/ledger.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>

namespace systole {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t space = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, space));
    line.remove_prefix(std::min(space + 1, line.size()));
  }
  return words;
}

std::optional<std::int64_t> number_of(std::string_view word) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (failed != std::errc() || end != word.data() + word.size() || number < 0) return {};
  return number;
}

template <typename Weight>
double summed(const std::vector<LedgerTurn>& turns, std::int64_t now, Weight weight) {
  double sum = 0;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    std::int64_t end = turns[i].ended_at.value_or(now);
    if (!turns[i].ended_at) {
      for (std::size_t j = i + 1; j < turns.size(); ++j) {
        if (turns[j].id != turns[i].id) continue;
        end = turns[j].began_at;
        break;
      }
    }
    sum += static_cast<double>(std::max<std::int64_t>(end - turns[i].began_at, 0)) * weight(turns[i]);
  }
  return sum;
}

}  // namespace

std::vector<LedgerTurn> read_ledger(std::string_view text) {
  std::vector<LedgerTurn> turns;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    if (newline == text.npos) break;  // torn
    const std::vector<std::string_view> words = words_of(text.substr(0, newline));
    text.remove_prefix(newline + 1);
    if (words.size() != 5) continue;
    const auto restart = number_of(words[2]), seconds = number_of(words[3]), last = number_of(words[4]);
    if (!restart || !seconds || !last) continue;
    if (words[0] == "began") {
      turns.push_back({std::string(words[1]), *restart, *seconds, *last, {}, {}});
    } else if (words[0] == "ended") {
      const auto turn = std::find_if(turns.rbegin(), turns.rend(), [&](const LedgerTurn& t) {
        return t.id == words[1] && t.restart == *restart && !t.ended_at;
      });
      if (turn == turns.rend()) continue;
      turn->ended_at = *seconds;
      turn->code = *last;
    }
  }
  return turns;
}

std::string with_lines_of(std::string ledger, std::string_view told) {
  if (!ledger.empty() && !ledger.ends_with('\n')) ledger += '\n';
  std::set<std::string, std::less<>> there;
  for (std::string_view rest = ledger; !rest.empty();) {
    const std::size_t end = rest.find('\n') + 1;
    there.emplace(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  while (true) {
    const std::size_t newline = told.find('\n');
    if (newline == told.npos) return ledger;  // torn: it is whole the next time
    const std::string_view line = told.substr(0, newline + 1);
    if (there.emplace(line).second) ledger += line;
    told.remove_prefix(newline + 1);
  }
}

double node_seconds(const std::vector<LedgerTurn>& turns, std::int64_t now) {
  return summed(turns, now, [](const LedgerTurn& turn) { return static_cast<double>(turn.nodes); });
}

double allocated_seconds(const std::vector<LedgerTurn>& turns, std::int64_t now) {
  return summed(turns, now, [](const LedgerTurn&) { return 1.0; });
}

}  // namespace systole
