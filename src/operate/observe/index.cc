#include "operate/observe/index.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "ground/base/arrange.h"
#include "ground/base/parallel.h"
#include "operate/observe/index_tables.h"
#include "operate/observe/run_files.h"

namespace systole {
namespace {

Status put(Statement& s, const RunRow& row) {
  s.reset();
  const RunSummary& run = row.summary;
  s.bind(run.run).bind(run.workload).bind(run.since).bind(row.opened_at).bind(name_of(run.state)).bind(run.problem);
  s.bind(run.step).bind(run.of.value_or(0)).bind(run.tokens).bind(row.processes).bind(row.parameters);
  s.bind(run.loss).bind(run.bits_per_byte);
  s.bind(std::optional(row.seconds.count()));
  TRY(s.bind(row.extent.event_files).bind(row.extent.last_bytes).bind(row.extent.plan_bytes).step());
  return {};
}

Result<Statement> statement_to_put(Database& database) {
  return database.prepare("INSERT OR REPLACE INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
}

using KnownRuns = std::unordered_map<std::string_view, const RunRow*>;  // by folder

// Which of the folders have a row that is still valid. Once a run's last process has recorded its end, the plan changes
// only with the next process, which has its own event file.
Result<std::vector<char>> hold(Store& runs, const std::vector<std::string>& folders, const KnownRuns& known) {
  constexpr std::size_t kShare = 256;  // folders per thread at a time
  std::vector<char> holds(folders.size(), 0);
  TRY(for_each_in_parallel((folders.size() + kShare - 1) / kShare, io_threads(), [&](std::size_t share) -> Status {
    for (std::size_t i = share * kShare; i < std::min((share + 1) * kShare, folders.size()); ++i)
      if (const auto row = known.find(folders[i]); row != known.end()) {
        const bool open = row->second->summary.state == RunState::running;  // its last process recorded no end
        const Result<bool> same = open ? has_extent(runs, folders[i], row->second->extent)
                                       : has_events(runs, folders[i], row->second->extent);
        if (!same.ok() && same.error().kind != ErrorKind::io) return same.error();
        holds[i] = same.ok() && *same;  // errors are reported where the folder is read
      }
    return {};
  }));
  return holds;
}

Result<std::vector<std::string>> folders_in(Store& runs) {
  std::vector<std::string> folders;
  for (std::string& name : TRY(runs.list("")))
    if (name.ends_with('/')) folders.push_back(name.substr(0, name.size() - 1));
  return folders;
}

using Read = std::optional<RunRow>;  // nothing: not a run's folder
Result<Read> read_folder(Store& runs, const std::string& folder) {
  if (!TRY(is_run(runs, folder))) return Read();
  return Read(TRY(summarize_run(runs, folder)));
}

// Whether a folder could not be read; adds its error to `refused` if that is given.
Result<bool> is_refused(const Result<Read>& read, std::vector<Error>* refused) {
  if (read.ok()) return false;
  if (refused == nullptr || read.error().kind != ErrorKind::io) return read.error();
  refused->push_back(read.error());
  return true;
}

std::vector<RunRow> newest_first(std::vector<RunRow> rows) {
  arrange(rows, [](const RunRow& a, const RunRow& b) {
    return std::tie(a.opened_at, a.summary.run) > std::tie(b.opened_at, b.summary.run);
  });
  return rows;
}

}  // namespace

Result<RunIndex> RunIndex::open(const std::string& file) { return RunIndex(TRY(open_index(file))); }

Result<int> RunIndex::rebuild(Store& runs, std::vector<Error>* refused) {
  return database_.transaction([&]() -> Result<int> {
    TRY(database_.execute("DELETE FROM runs"));
    Statement s = TRY(statement_to_put(database_));
    int count = 0;
    for (const std::string& folder : TRY(folders_in(runs))) {
      const Result<Read> read = read_folder(runs, folder);
      if (TRY(is_refused(read, refused)) || !*read) continue;
      TRY(put(s, **read));
      ++count;
    }
    return count;
  });
}

Result<int> RunIndex::refresh(Store& runs, std::vector<Error>* refused) { return refresh(TRY(rows()), runs, refused); }

Result<int> RunIndex::refresh(const std::vector<RunRow>& all, Store& runs, std::vector<Error>* refused) {
  KnownRuns known;
  known.reserve(all.size());
  for (const RunRow& row : all) known.emplace(row.summary.run, &row);
  const std::vector<std::string> folders = TRY(folders_in(runs));
  const std::vector<char> holds = TRY(hold(runs, folders, known));
  std::vector<RunRow> changed;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    if (holds[i] == 0) {
      Result<Read> read = read_folder(runs, folders[i]);
      if (!TRY(is_refused(read, refused))) {
        if (!*read) continue;
        changed.push_back(**std::move(read));
      }
    }
    known.erase(folders[i]);
  }
  if (changed.empty() && known.empty()) return 0;
  return database_.transaction([&]() -> Result<int> {
    Statement to = TRY(statement_to_put(database_)), from = TRY(database_.prepare("DELETE FROM runs WHERE folder = ?"));
    for (const RunRow& row : changed) TRY(put(to, row));
    for (const auto& [folder, row] : known) {
      from.reset();
      TRY(from.bind(row->summary.run).step());
    }
    return static_cast<int>(changed.size() + known.size());
  });
}

Result<std::vector<RunRow>> RunIndex::list() { return newest_first(TRY(rows())); }

Result<std::vector<RunRow>> RunIndex::refreshed(Store& runs, std::vector<Error>* refused) {
  std::vector<RunRow> all = TRY(rows());
  return TRY(refresh(all, runs, refused)) == 0 ? newest_first(std::move(all)) : list();
}

Result<std::vector<RunRow>> RunIndex::rows() {
  std::vector<RunRow> rows;
  rows.reserve(TRY(row_count(database_, "runs")));
  Statement s = TRY(database_.prepare("SELECT * FROM runs"));
  while (TRY(s.step())) {
    RunRow row;
    RunSummary& run = row.summary;
    std::string state;
    for (std::string* text : {&run.run, &run.workload, &run.since, &row.opened_at, &state, &run.problem}) s.read(*text);
    run.state = run_state_named(state).value_or(RunState::unknown);
    std::int64_t of = 0;
    for (std::int64_t* number : {&run.step, &of, &run.tokens, &row.processes, &row.parameters}) s.read(*number);
    if (of > 0) run.of = of;
    s.read(run.loss);
    s.read(run.bits_per_byte);
    std::optional<double> seconds;
    s.read(seconds);
    row.seconds = Seconds(seconds.value_or(0));
    for (std::int64_t* part : {&row.extent.event_files, &row.extent.last_bytes, &row.extent.plan_bytes}) s.read(*part);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace systole
