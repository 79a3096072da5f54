#include "operate/cluster/allocation_ledger.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "ground/base/exit_code.h"
#include "ground/base/text_file.h"
#include "ground/store/private_store.h"
#include "operate/cluster/cluster.h"
#include "operate/cluster/words.h"

namespace systole {
namespace {

// The end of interval i: its own, or the begin of its job's next interval, or of a job that the run was resubmitted as,
// which happens after the earlier one is over. Nothing while it is open.
std::optional<std::int64_t> end_of(const std::vector<AllocationInterval>& intervals, std::size_t i) {
  if (intervals[i].ended_at) return intervals[i].ended_at;
  for (std::size_t j = i + 1; j < intervals.size(); ++j)
    if (intervals[j].id == intervals[i].id || job_of(intervals[j].id) != job_of(intervals[i].id))
      return intervals[j].began_at;
  return {};
}

template <typename Weight>
double summed(const std::vector<AllocationInterval>& intervals, std::int64_t now, Weight weight) {
  double sum = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const std::int64_t end = end_of(intervals, i).value_or(now);
    sum += static_cast<double>(std::max<std::int64_t>(end - intervals[i].began_at, 0)) * weight(intervals[i]);
  }
  return sum;
}

}  // namespace

std::string_view job_of(std::string_view id) { return id.substr(0, id.find('_')); }

AllocationInterval* last_of(std::vector<AllocationInterval>& intervals, std::string_view id) {
  const auto last = std::find_if(intervals.rbegin(), intervals.rend(),
                                 [&](const AllocationInterval& interval) { return interval.id == id; });
  return last == intervals.rend() ? nullptr : &*last;
}

std::vector<AllocationInterval> read_ledger(std::string_view text) {
  std::vector<AllocationInterval> intervals;
  while (!text.empty()) {
    if (text.find('\n') == text.npos) break;  // torn
    const std::vector<std::string_view> words = words_of(take_line(text));
    if (words.size() != 5) continue;
    const auto restart = number_of(words[2]), seconds = number_of(words[3]), last = number_of(words[4]);
    if (!restart || !seconds || !last) continue;
    if (words[0] == "began") {
      intervals.push_back({std::string(words[1]), *restart, *seconds, *last, {}, {}});
    } else if (words[0] == "ended") {
      const auto interval = std::find_if(intervals.rbegin(), intervals.rend(), [&](const AllocationInterval& t) {
        return t.id == words[1] && t.restart == *restart && !t.ended_at;
      });
      if (interval == intervals.rend()) continue;
      interval->ended_at = *seconds;
      interval->code = *last;
    }
  }
  return intervals;
}

namespace {

// Its two lines, or only the first if it has not ended.
std::string ledger_lines(const AllocationInterval& interval) {
  std::string lines =
      fmt::format("began {} {} {} {}\n", interval.id, interval.restart, interval.began_at, interval.nodes);
  if (interval.ended_at)
    lines += fmt::format("ended {} {} {} {}\n", interval.id, interval.restart, *interval.ended_at,
                         interval.code.value_or(kExitNo));
  return lines;
}

void end_at(AllocationInterval& interval, std::int64_t ended_at, std::optional<std::int64_t> code) {
  interval.ended_at = std::max(ended_at, interval.began_at);
  interval.code = code.value_or(kExitNo);
}

// Finds matching intervals of another list; call in that list's order.
class SameIntervals {
 public:
  template <typename Intervals>  // AllocationInterval, possibly const
  auto find_in(Intervals& intervals, const AllocationInterval& one) {
    int nth = before_[{one.id, one.began_at}]++;
    return std::ranges::find_if(intervals, [&](const AllocationInterval& other) {
      return other.id == one.id && other.began_at == one.began_at && nth-- == 0;
    });
  }

 private:
  std::map<std::pair<std::string, std::int64_t>, int> before_;  // how many with that begin came so far
};

}  // namespace

void merge_intervals(std::vector<AllocationInterval>& known, std::span<const AllocationInterval> told) {
  SameIntervals those;
  for (const AllocationInterval& one : told) {
    auto same = those.find_in(known, one);
    if (same == known.end()) {
      AllocationInterval added{one.id, one.restart, one.began_at, one.nodes, {}, {}};
      const auto is_of_job = [&](const AllocationInterval& other) { return other.id == one.id; };
      if (std::ranges::any_of(known, [&](const auto& k) { return is_of_job(k) && k.restart == one.restart; }))
        added.restart = std::ranges::count_if(known, is_of_job);
      same = known.insert(known.end(), std::move(added));
    }
    if (!same->ended_at && one.ended_at) end_at(*same, *one.ended_at, one.code);
  }
}

std::string lines_beyond(const std::vector<AllocationInterval>& known, std::span<const AllocationInterval> all) {
  std::string lines;
  SameIntervals those;
  for (const AllocationInterval& one : all) {
    const auto same = those.find_in(known, one);
    if (same == known.end() || (!same->ended_at && one.ended_at)) lines += ledger_lines(one);
  }
  return lines;
}

void merge_allocations(std::vector<AllocationInterval>& known, std::span<const JobStatus> jobs) {
  for (const JobStatus& job : jobs) {
    std::vector<AllocationInterval> told = job.allocations;
    if (const AllocationInterval* last = last_of(known, job.id); job.sure && last != nullptr)
      std::erase_if(told, [&](const AllocationInterval& one) { return one.began_at < last->began_at; });
    merge_intervals(known, told);
    if (!job.sure || !is_over(job.state)) continue;
    if (AllocationInterval* last = last_of(known, job.id); last != nullptr && !last->ended_at)
      end_at(*last, job.ended_at, job.exit_code);
  }
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
    if (newline == told.npos) return ledger;  // torn: it will be complete the next time
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

void end_by(std::vector<AllocationInterval>& intervals, std::span<const JobStatus> jobs) {
  for (const JobStatus& job : jobs) {
    if (!is_over(job.state) || job.ended_at == 0) continue;
    if (AllocationInterval* last = last_of(intervals, job.id); last != nullptr && !last->ended_at)
      last->ended_at = std::max(job.ended_at, last->began_at);
  }
}

bool goes_on(const std::vector<AllocationInterval>& intervals) {
  for (std::size_t i = 0; i < intervals.size(); ++i)
    if (!end_of(intervals, i)) return true;
  return false;
}

double node_seconds(const std::vector<AllocationInterval>& intervals, std::int64_t now) {
  return summed(intervals, now, [](const AllocationInterval& interval) { return static_cast<double>(interval.nodes); });
}

double allocated_seconds(const std::vector<AllocationInterval>& intervals, std::int64_t now) {
  return summed(intervals, now, [](const AllocationInterval&) { return 1.0; });
}

}  // namespace systole
