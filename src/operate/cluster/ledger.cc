#include "operate/cluster/ledger.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "ground/base/text_file.h"
#include "ground/store/private_store.h"
#include "operate/cluster/cluster.h"
#include "operate/cluster/words.h"

namespace systole {
namespace {

// "3_1" is a task of job 3.
std::string_view job_of(std::string_view id) { return id.substr(0, id.find('_')); }

// Of the turn with that index: its own, or the begin of its job's next one, or of a job that the run was sent again as,
// which is when the one before was over; nothing while it goes on.
std::optional<std::int64_t> end_of(const std::vector<LedgerTurn>& turns, std::size_t i) {
  if (turns[i].ended_at) return turns[i].ended_at;
  for (std::size_t j = i + 1; j < turns.size(); ++j)
    if (turns[j].id == turns[i].id || job_of(turns[j].id) != job_of(turns[i].id)) return turns[j].began_at;
  return {};
}

template <typename Weight>
double summed(const std::vector<LedgerTurn>& turns, std::int64_t now, Weight weight) {
  double sum = 0;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const std::int64_t end = end_of(turns, i).value_or(now);
    sum += static_cast<double>(std::max<std::int64_t>(end - turns[i].began_at, 0)) * weight(turns[i]);
  }
  return sum;
}

}  // namespace

std::vector<LedgerTurn> read_ledger(std::string_view text) {
  std::vector<LedgerTurn> turns;
  while (!text.empty()) {
    if (text.find('\n') == text.npos) break;  // torn
    const std::vector<std::string_view> words = words_of(take_line(text));
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

Result<std::string> ledger_text(const std::string& path) {
  Result<std::string> text = read_text_file(path);
  if (!text.ok() && text.error().kind == ErrorKind::not_found) return std::string();
  return text;
}

Status add_to_ledger(const std::string& path, std::string_view lines) {
  const std::filesystem::path place(path);
  const std::string before = TRY(ledger_text(path)), after = with_lines_of(before, lines);
  if (after == before) return {};
  const std::unique_ptr<Store> store = TRY(open_private_store(place.parent_path().string()));
  return write_whole(*store, place.filename().string(), after);
}

void end_by(std::vector<LedgerTurn>& turns, std::span<const Seen> jobs) {
  for (const Seen& job : jobs) {
    if (!is_over(job.phase) || job.ended_at == 0) continue;
    const auto last =
        std::find_if(turns.rbegin(), turns.rend(), [&](const LedgerTurn& turn) { return turn.id == job.id; });
    if (last != turns.rend() && !last->ended_at) last->ended_at = std::max(job.ended_at, last->began_at);
  }
}

bool goes_on(const std::vector<LedgerTurn>& turns) {
  for (std::size_t i = 0; i < turns.size(); ++i)
    if (!end_of(turns, i)) return true;
  return false;
}

double node_seconds(const std::vector<LedgerTurn>& turns, std::int64_t now) {
  return summed(turns, now, [](const LedgerTurn& turn) { return static_cast<double>(turn.nodes); });
}

double allocated_seconds(const std::vector<LedgerTurn>& turns, std::int64_t now) {
  return summed(turns, now, [](const LedgerTurn&) { return 1.0; });
}

}  // namespace systole
