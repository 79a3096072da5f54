#include "operate/cli/submitted_rows.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "operate/cli/cluster_runs.h"
#include "operate/cluster/record_stamps.h"

namespace systole::cli {
namespace {

// A target may yet put a job back into its queue that has only just ended: such a run is asked about once more.
constexpr std::int64_t kSettled = 60;  // seconds

struct Asked {  // a run that is not known to be over
  Record record;
  std::optional<std::uint64_t> files;
  const SubmittedRow* before = nullptr;  // as it was seen last
};

using Looked = std::optional<std::vector<Seen>>;  // nothing: its cluster could not be asked

// The same of many clusters: each is asked once. One that cannot be asked is a warning.
std::vector<Looked> look_at(const std::vector<Asked>& asked, Context& context) {
  const auto context_of = [](const Record& record) {
    const auto found = record.where.find("context");
    return found == record.where.end() ? std::string() : found->second;
  };
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> by_target;
  for (std::size_t i = 0; i < asked.size(); ++i)
    by_target[{asked[i].record.target, context_of(asked[i].record)}].push_back(i);
  std::vector<Looked> seen(asked.size());
  for (const auto& [there_is, at] : by_target) {
    const std::string& target = there_is.first;
    std::vector<Record> of_target;
    for (const std::size_t i : at) of_target.push_back(asked[i].record);
    const auto look_there = [&]() -> Result<std::vector<std::vector<Seen>>> {
      return systole::look(*TRY(open_cluster(target, of_target[0].where, context.out)), of_target);
    };
    Result<std::vector<std::vector<Seen>>> there = look_there();
    if (!there.ok()) context.out.warning(there.error());
    for (std::size_t i = 0; there.ok() && i < at.size(); ++i) seen[at[i]] = std::move((*there)[i]);
  }
  return seen;
}

// Whether nothing that its row says can change any more while its record and its ledger do not.
bool is_settled(std::span<const Seen> jobs, const Used& used, Clock& clock) {
  const std::int64_t now = std::chrono::system_clock::to_time_t(clock.calendar());
  return !jobs.empty() && !used.goes_on && std::ranges::all_of(jobs, [&](const Seen& job) {
    return is_over(job.phase) && job.ended_at <= now - kSettled;
  });
}

// What the row before says of the same job; its cost is of the ledger, which is read here.
void take_last_state(SubmittedRow& row, const SubmittedRow* before) {
  row.stale = true;
  if (before == nullptr || before->target != row.target || before->id != row.id) return;
  row.state = before->state;
  if (row.reason.empty()) row.reason = before->reason;
  row.nodes = before->nodes;
  row.restarts = before->restarts;
  row.jobs = before->jobs;
  row.seen_at = before->seen_at;
}

SubmittedRow row_now(const Asked& asked, const Looked& looked, Clock& clock) {
  const std::vector<Seen> jobs = looked.value_or(std::vector<Seen>());
  const Used used = used_by(asked.record, jobs, clock);
  SubmittedRow row = row_of(asked.record, jobs, used);
  if (!looked || !std::ranges::all_of(jobs, &Seen::answered)) {
    take_last_state(row, asked.before);
    return row;
  }
  row.files = asked.files.value_or(0);
  row.seen_at = std::chrono::system_clock::to_time_t(clock.calendar());
  row.over = asked.files && is_settled(jobs, used, clock);
  return row;
}

// Sorted by where they are: a row is large.
std::vector<SubmittedRow> newest_first(std::vector<SubmittedRow*> rows) {
  std::ranges::sort(rows, [](const SubmittedRow* a, const SubmittedRow* b) {
    return a->submitted_at != b->submitted_at ? a->submitted_at > b->submitted_at : a->run < b->run;
  });
  std::vector<SubmittedRow> sorted;
  sorted.reserve(rows.size());
  for (SubmittedRow* row : rows) sorted.push_back(std::move(*row));
  return sorted;
}

}  // namespace

std::vector<SubmittedRow> submitted_rows(const std::string& folder, std::vector<SubmittedRow> before,
                                         SubmittedIndex& index, Context& context) {
  std::unordered_map<std::string_view, SubmittedRow*> known;
  for (SubmittedRow& row : before) known.emplace(row.run, &row);
  std::vector<SubmittedRow*> holding;
  std::vector<Asked> asked;
  std::optional<Submissions> submissions = Submissions::open_if_there(folder).value();
  if (submissions)
    for (const RecordStamp& stamp : record_stamps(*submissions).value()) {
      const auto row = known.find(stamp.run);
      SubmittedRow* last = row == known.end() ? nullptr : row->second;
      if (last != nullptr && last->over && last->files == stamp.files) {
        holding.push_back(last);
        known.erase(row);
        continue;
      }
      Result<std::optional<Record>> record = submissions->find(stamp.run);
      if (!record.ok())  // of the others all is known
        context.out.warning(record.error());
      else if (*record)
        asked.push_back({std::move(**record), stamp.files, last});
      if (record.ok() && *record && last != nullptr) known.erase(row);
    }
  const std::vector<Looked> looked = look_at(asked, context);
  std::vector<SubmittedRow> rows, seen;
  rows.reserve(asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const SubmittedRow& row = rows.emplace_back(row_now(asked[i], looked[i], context.clock));
    if (!row.stale) seen.push_back(row);
  }
  std::vector<std::string> forgotten;
  for (const auto& [run, row] : known) forgotten.emplace_back(run);
  if (const Status taken = index.change(forgotten, seen); !taken.ok()) context.out.warning(taken.error());
  for (SubmittedRow& row : rows) holding.push_back(&row);
  return newest_first(std::move(holding));
}

}  // namespace systole::cli
