#include "operate/observe/submitted_index.h"

#include "operate/observe/index_tables.h"

namespace systole {
namespace {

std::optional<double> number_of(const std::optional<Dollars>& dollars) {
  return dollars ? std::optional(dollars->count()) : std::nullopt;
}
std::optional<Dollars> dollars_of(const std::optional<double>& number) {
  return number ? std::optional(Dollars(*number)) : std::nullopt;
}

Status put_row(Statement& s, const SubmittedRow& row) {
  const RunSummary& run = row.summary;
  s.reset();
  s.bind(run.run).bind(static_cast<std::int64_t>(row.files)).bind(run.target).bind(run.id).bind(name_of(run.state));
  for (const std::string* text : {&run.problem, &row.folder, &run.since, &row.by, &row.nodes}) s.bind(*text);
  s.bind(row.restarts).bind(std::optional(row.node_seconds)).bind(number_of(run.cost)).bind(number_of(run.budget));
  s.bind(run.exit_code.value_or(-1)).bind(row.told);
  TRY(s.bind(row.seen_at).bind(static_cast<std::int64_t>(row.over)).step());
  return {};
}

Status put_jobs(Statement& s, const SubmittedRow& row) {
  std::int64_t number = 0;
  for (const SubmittedJob& job : row.jobs) {
    s.reset();
    s.bind(row.summary.run).bind(number++).bind(job.id).bind(name_of(job.state)).bind(job.reason).bind(job.nodes);
    TRY(s.bind(job.restarts).bind(job.began_at).bind(job.ended_at).step());
  }
  return {};
}

// Both lists are sorted by run.
Status add_jobs(Database& database, std::vector<SubmittedRow>& rows) {
  Statement s = TRY(database.prepare("SELECT * FROM jobs ORDER BY run, number"));
  auto row = rows.begin();
  while (TRY(s.step())) {
    std::string run, state;
    std::int64_t number = 0;
    SubmittedJob job;
    s.read(run);
    s.read(number);
    for (std::string* text : {&job.id, &state, &job.reason, &job.nodes}) s.read(*text);
    job.state = run_state_named(state).value_or(RunState::unknown);
    for (std::int64_t* count : {&job.restarts, &job.began_at, &job.ended_at}) s.read(*count);
    while (row != rows.end() && row->summary.run < run) ++row;
    if (row != rows.end() && row->summary.run == run) row->jobs.push_back(std::move(job));
  }
  return {};
}

}  // namespace

Result<SubmittedIndex> SubmittedIndex::open(const std::string& file) { return SubmittedIndex(TRY(open_index(file))); }

Result<std::vector<SubmittedRow>> SubmittedIndex::list(bool with_jobs) {
  std::vector<SubmittedRow> rows;
  rows.reserve(TRY(row_count(database_, "submitted")));
  Statement s = TRY(database_.prepare("SELECT * FROM submitted ORDER BY run"));
  while (TRY(s.step())) {
    SubmittedRow& row = rows.emplace_back();
    RunSummary& run = row.summary;
    std::int64_t files = 0, exit_code = 0;
    std::string state;
    s.read(run.run);
    s.read(files);
    row.files = static_cast<std::uint64_t>(files);
    for (std::string* text : {&run.target, &run.id, &state, &run.problem, &row.folder, &run.since, &row.by, &row.nodes})
      s.read(*text);
    run.state = run_state_named(state).value_or(RunState::unknown);
    s.read(row.restarts);
    std::optional<double> node_seconds, cost, budget;
    s.read(node_seconds);
    row.node_seconds = node_seconds.value_or(0);
    s.read(cost);
    run.cost = dollars_of(cost);
    s.read(budget);
    run.budget = dollars_of(budget);
    s.read(exit_code);
    if (exit_code >= 0) run.exit_code = exit_code;
    s.read(row.told);
    s.read(row.seen_at);
    std::int64_t over = 0;
    s.read(over);
    row.over = over != 0;
  }
  if (with_jobs) TRY(add_jobs(database_, rows));
  return rows;
}

Status SubmittedIndex::change(std::span<const std::string> forgotten, std::span<const SubmittedRow> rows) {
  if (forgotten.empty() && rows.empty()) return {};
  TRY(database_.transaction([&]() -> Result<int> {
    Statement from_rows = TRY(database_.prepare("DELETE FROM submitted WHERE run = ?"));
    Statement from_jobs = TRY(database_.prepare("DELETE FROM jobs WHERE run = ?"));
    const auto forget = [&](const std::string& run) -> Status {
      from_rows.reset();
      from_jobs.reset();
      TRY(from_rows.bind(run).step());
      TRY(from_jobs.bind(run).step());
      return {};
    };
    for (const std::string& run : forgotten) TRY(forget(run));
    Statement to_rows = TRY(database_.prepare("INSERT INTO submitted VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
    Statement to_jobs = TRY(database_.prepare("INSERT INTO jobs VALUES (?,?,?,?,?,?,?,?,?)"));
    for (const SubmittedRow& row : rows) {
      TRY(forget(row.summary.run));
      TRY(put_row(to_rows, row));
      TRY(put_jobs(to_jobs, row));
    }
    return static_cast<int>(rows.size());
  }));
  return {};
}

}  // namespace systole
