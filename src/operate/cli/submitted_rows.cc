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
};

// The same of many clusters: each is asked once. One that cannot be asked is a warning, and its runs are unknown.
std::vector<std::vector<Seen>> look_at(const std::vector<Asked>& asked, Context& context) {
  const auto context_of = [](const Record& record) {
    const auto found = record.where.find("context");
    return found == record.where.end() ? std::string() : found->second;
  };
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> by_target;
  for (std::size_t i = 0; i < asked.size(); ++i)
    by_target[{asked[i].record.target, context_of(asked[i].record)}].push_back(i);
  std::vector<std::vector<Seen>> seen(asked.size());
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

std::vector<SubmittedRow> submitted_rows(const std::string& folder, std::vector<SubmittedRow> over,
                                         SubmittedIndex& index, Context& context) {
  std::unordered_map<std::string_view, SubmittedRow*> known;
  for (SubmittedRow& row : over) known.emplace(row.run, &row);
  std::vector<SubmittedRow*> holding;
  std::vector<Asked> asked;
  std::optional<Submissions> submissions = Submissions::open_if_there(folder).value();
  if (submissions)
    for (const RecordStamp& stamp : record_stamps(*submissions).value()) {
      const auto row = known.find(stamp.run);
      if (row != known.end() && row->second->files == stamp.files) {
        holding.push_back(row->second);
        known.erase(row);
        continue;
      }
      Result<std::optional<Record>> record = submissions->find(stamp.run);
      if (!record.ok())  // of the others all is known
        context.out.warning(record.error());
      else if (*record)
        asked.push_back({std::move(**record), stamp.files});
    }
  const std::vector<std::vector<Seen>> seen = look_at(asked, context);
  std::vector<SubmittedRow> looked_at, settled;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const Used used = used_by(asked[i].record, seen[i], context.clock);
    SubmittedRow& row = looked_at.emplace_back(row_of(asked[i].record, seen[i], used));
    row.files = asked[i].files.value_or(0);
    if (asked[i].files && is_settled(seen[i], used, context.clock)) settled.push_back(row);
  }
  std::vector<std::string> forgotten;
  for (const auto& [run, row] : known) forgotten.emplace_back(run);
  if (const Status taken = index.change(forgotten, settled); !taken.ok()) context.out.warning(taken.error());
  for (SubmittedRow& row : looked_at) holding.push_back(&row);
  return newest_first(std::move(holding));
}

}  // namespace systole::cli
