#include "operate/runs/submitted_rows.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <unordered_map>

#include "ground/base/arrange.h"
#include "ground/base/files.h"
#include "operate/runs/submitted_runs.h"

namespace systole {
namespace {

// Filled in place: an initializer list would be copied, and there may be tens of thousands of rows.
Node to_node(const SubmittedJob& job) {
  std::vector<Node::Entry> fields;
  fields.reserve(7);
  const std::string state = name_of(job.state);
  for (const auto& [key, text] :
       {std::pair("id", &job.id), {"state", &state}, {"reason", &job.reason}, {"nodes", &job.nodes}})
    fields.push_back({key, *text});
  fields.push_back({"restarts", job.restarts});
  fields.push_back({"began_at", job.began_at});
  fields.push_back({"ended_at", job.ended_at});
  return Node::map(std::move(fields));
}

// A target may put a job that has just ended back into its queue; such a run is queried once more.
constexpr std::int64_t kSettled = 60;  // seconds

struct Asked {  // a run that is not known to be over
  Record record;
  std::optional<std::uint64_t> files;
  const SubmittedRow* before = nullptr;  // as last seen
};

using Answer = std::optional<RunStatus>;  // nothing: its cluster could not be queried

// What the run's ledger lacks, as recorded in the row: about this job, or the run's earlier jobs.
std::string told_of(const SubmittedRow* row, const Record& record) {
  if (row == nullptr || row->summary.target != record.target) return "";
  const std::string& id = row->summary.id;
  const bool its_own = id == record.id || std::ranges::find(record.earlier, id) != record.earlier.end();
  return its_own ? row->told : "";
}

// The same for many clusters; each is queried once. A failed query is a warning.
std::vector<Answer> query_each(const std::vector<Asked>& asked, const FollowScene& scene) {
  const auto context_of = [](const Record& record) {
    const auto found = record.where.find("context");
    return found == record.where.end() ? std::string() : found->second;
  };
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> by_target;
  for (std::size_t i = 0; i < asked.size(); ++i)
    by_target[{asked[i].record.target, context_of(asked[i].record)}].push_back(i);
  std::vector<Answer> answers(asked.size());
  for (const auto& [there_is, at] : by_target) {
    const std::string& target = there_is.first;
    std::vector<Record> of_target;
    std::vector<std::string> told_before;
    for (const std::size_t i : at) {
      of_target.push_back(asked[i].record);
      told_before.push_back(told_of(asked[i].before, asked[i].record));
    }
    const auto query_there = [&]() -> Result<std::vector<RunStatus>> {
      return systole::query(*TRY(open_cluster(target, of_target[0].where, scene.messages.warning)), of_target,
                            told_before);
    };
    Result<std::vector<RunStatus>> there = query_there();
    if (!there.ok()) scene.messages.warning(there.error());
    for (std::size_t i = 0; there.ok() && i < at.size(); ++i) answers[at[i]] = std::move((*there)[i]);
  }
  return answers;
}

// Whether the row is final as long as the record and the ledger do not change.
bool is_final(const RunStatus& status, std::int64_t now) {
  return !status.jobs.empty() && !goes_on(status.allocations) &&
         std::ranges::all_of(
             status.jobs, [&](const JobStatus& job) { return is_over(job.state) && job.ended_at <= now - kSettled; });
}

// Takes the state of the same job from the previous row; the cost comes from the ledger, which is read here.
void take_last_state(SubmittedRow& row, const SubmittedRow* before) {
  row.stale = true;
  if (before == nullptr || before->summary.target != row.summary.target || before->summary.id != row.summary.id) return;
  row.summary.state = before->summary.state;
  row.summary.exit_code = before->summary.exit_code;
  if (row.summary.problem.empty()) row.summary.problem = before->summary.problem;
  row.nodes = before->nodes;
  row.restarts = before->restarts;
  row.jobs = before->jobs;
  row.seen_at = before->seen_at;
}

// The complete row of a run.
SubmittedRow submitted_row(const Record& record, const RunStatus& status, std::int64_t now) {
  const JobStatus all = status.overall();
  SubmittedRow row;
  row.summary = summarize(record, status, now);
  row.nodes = all.nodes;
  row.restarts = all.restarts;
  row.folder = record.folder;
  row.by = record.by;
  row.node_seconds = node_seconds(status.allocations, now);
  row.told = status.told;
  for (const JobStatus& job : status.jobs)
    row.jobs.push_back({job.id, job.state, job.reason, job.nodes, job.restarts, job.began_at, job.ended_at});
  return row;
}

SubmittedRow row_now(const Asked& asked, const Answer& answer, std::int64_t now) {
  const RunStatus status = answer ? *answer : ledger_status(asked.record, told_of(asked.before, asked.record));
  SubmittedRow row = submitted_row(asked.record, status, now);
  if (!answer || !std::ranges::all_of(status.jobs, &JobStatus::answered)) {
    take_last_state(row, asked.before);
    return row;
  }
  row.files = asked.files.value_or(0);
  row.seen_at = now;
  row.over = asked.files && is_final(status, now);
  return row;
}

std::vector<SubmittedRow> newest_first(std::vector<SubmittedRow> rows) {
  arrange(rows, [](const SubmittedRow& a, const SubmittedRow& b) {
    const RunSummary &x = a.summary, &y = b.summary;
    return x.since != y.since ? x.since > y.since : x.run < y.run;
  });
  return rows;
}

}  // namespace

std::string told_before(const std::string& runs, const Record& record) {
  const std::string file = runs + "/" + kIndexFile;
  if (!path_exists(file)) return "";
  Result<SubmittedIndex> index = SubmittedIndex::open(file);
  if (!index.ok()) return "";
  const Result<std::vector<SubmittedRow>> rows = index->list(false);
  if (!rows.ok()) return "";
  const auto row = std::ranges::find(*rows, record.run, [](const SubmittedRow& one) { return one.summary.run; });
  return row == rows->end() ? "" : told_of(&*row, record);
}

Node to_node(const SubmittedRow& row) {
  std::vector<Node> jobs;
  jobs.reserve(row.jobs.size());
  for (const SubmittedJob& job : row.jobs) jobs.push_back(to_node(job));
  std::vector<Node::Entry> fields;
  fields.reserve(13);
  const RunSummary& run = row.summary;
  const std::string state = name_of(run.state);
  for (const auto& [key, text] : {std::pair("run", &run.run),
                                  {"target", &run.target},
                                  {"id", &run.id},
                                  {"state", &state},
                                  {"reason", &run.problem},
                                  {"folder", &row.folder},
                                  {"submitted_at", &run.since},
                                  {"by", &row.by}})
    fields.push_back({key, *text});
  fields.push_back({"node_seconds", row.node_seconds});
  fields.push_back({"dollars", run.cost ? Node(run.cost->count()) : Node()});
  fields.push_back({"budget", run.budget ? Node(run.budget->count()) : Node()});
  const bool before = row.stale && row.seen_at != 0;
  fields.push_back(
      {"seen_at", before ? Node(to_iso8601(std::chrono::system_clock::from_time_t(row.seen_at))) : Node()});
  fields.push_back({"jobs", Node::sequence(std::move(jobs))});
  return Node::map(std::move(fields));
}

Node run_node(const Record& record, const RunStatus& status, Clock& clock) {
  return to_node(submitted_row(record, status, clock.unix_time()));
}

std::future<Result<SubmittedFiles>> submitted_files(std::string folder) {
  const auto look = [folder = std::move(folder)]() -> Result<SubmittedFiles> {
    SubmittedFiles files;
    files.submissions = TRY(Submissions::open_if_there(folder));
    if (files.submissions) files.stamps = TRY(record_stamps(*files.submissions));
    return files;
  };
  return std::async(std::launch::async | std::launch::deferred, look);  // deferred: there is no thread to be had
}

std::vector<SubmittedRow> submitted_rows(SubmittedFiles files, std::vector<SubmittedRow> before, SubmittedIndex& index,
                                         const FollowScene& scene) {
  std::unordered_map<std::string_view, SubmittedRow*> known;
  known.reserve(before.size());
  for (SubmittedRow& row : before) known.emplace(row.summary.run, &row);
  std::vector<SubmittedRow*> holding;
  std::vector<Asked> asked;
  for (const RecordStamp& stamp : files.stamps) {
    const auto row = known.find(stamp.run);
    SubmittedRow* last = row == known.end() ? nullptr : row->second;
    if (last != nullptr && last->over && last->files == stamp.files) {
      holding.push_back(last);
      known.erase(row);
      continue;
    }
    Result<std::optional<Record>> record = files.submissions->find(stamp.run);
    if (!record.ok())  // all rows of the others are known
      scene.messages.warning(record.error());
    else if (*record)
      asked.push_back({std::move(**record), stamp.files, last});
    if (record.ok() && *record && last != nullptr) known.erase(row);
  }
  const std::vector<Answer> answers = query_each(asked, scene);
  std::vector<SubmittedRow> rows, seen;
  rows.reserve(asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const SubmittedRow& row = rows.emplace_back(row_now(asked[i], answers[i], scene.clock.unix_time()));
    if (!row.stale) seen.push_back(row);
  }
  std::vector<std::string> forgotten;
  for (const auto& [run, row] : known) forgotten.emplace_back(run);
  if (const Status taken = index.change(forgotten, seen); !taken.ok()) scene.messages.warning(taken.error());
  if (holding.size() == before.size() && rows.empty()) return newest_first(std::move(before));
  for (SubmittedRow* row : holding) rows.push_back(std::move(*row));
  return newest_first(std::move(rows));
}

}  // namespace systole
