#include "operate/observe/index.h"

#include <sqlite3.h>

#include <map>

#include "operate/observe/run_files.h"

namespace systole {
namespace {

constexpr int kIndexVersion = 1;  // PRAGMA user_version; another one is made anew
constexpr const char* kTable =
    "CREATE TABLE IF NOT EXISTS runs (folder TEXT PRIMARY KEY, name TEXT, started_at TEXT, opened_at TEXT, state TEXT,"
    " steps INTEGER, tokens INTEGER, processes INTEGER, parameters INTEGER, loss REAL, bits_per_byte REAL,"
    " seconds REAL, file_bytes INTEGER)";

Error sqlite_error(sqlite3* database, const std::string& file) {
  const int code = sqlite3_errcode(database) & 0xff;
  const ErrorKind kind = code == SQLITE_NOTADB || code == SQLITE_CORRUPT ? ErrorKind::corrupt
                         : code == SQLITE_FULL                           ? ErrorKind::no_space
                         : code == SQLITE_BUSY                           ? ErrorKind::busy
                                                                         : ErrorKind::io;
  return error(kind, "the index of runs: {}", sqlite3_errmsg(database))
      .at({file, 0, 0})
      .hinted(kind == ErrorKind::corrupt ? fmt::format("it is derived: rm {} and look again", file) : "");
}

// One statement, its parameters and its columns in the order in which they are bound and read.
class Statement {
 public:
  static Result<Statement> prepare(sqlite3* database, const std::string& file, const char* sql) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(database, sql, -1, &raw, nullptr) != SQLITE_OK) return sqlite_error(database, file);
    return Statement(database, file, raw);
  }
  Statement& bind(const std::string& text) {
    sqlite3_bind_text(statement_.get(), ++bound_, text.c_str(), -1, SQLITE_TRANSIENT);
    return *this;
  }
  Statement& bind(std::int64_t number) {
    sqlite3_bind_int64(statement_.get(), ++bound_, number);
    return *this;
  }
  Statement& bind(const std::optional<double>& number) {
    ++bound_;
    if (number) sqlite3_bind_double(statement_.get(), bound_, *number);
    return *this;
  }
  // Whether there is a row. Errors: io, no_space, busy, corrupt.
  Result<bool> step() {
    column_ = -1;
    switch (sqlite3_step(statement_.get())) {
      case SQLITE_ROW: return true;
      case SQLITE_DONE: return false;
      default: return sqlite_error(database_, file_);
    }
  }
  void read(std::string& text) {
    const unsigned char* bytes = sqlite3_column_text(statement_.get(), ++column_);
    text = bytes == nullptr ? "" : reinterpret_cast<const char*>(bytes);
  }
  void read(std::int64_t& number) { number = sqlite3_column_int64(statement_.get(), ++column_); }
  void read(std::optional<double>& number) {
    ++column_;
    number.reset();
    if (sqlite3_column_type(statement_.get(), column_) != SQLITE_NULL)
      number = sqlite3_column_double(statement_.get(), column_);
  }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  Statement(sqlite3* database, std::string file, sqlite3_stmt* raw)
      : database_(database), file_(std::move(file)), statement_(raw) {}
  sqlite3* database_;
  std::string file_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0, column_ = -1;
};

Status execute(sqlite3* database, const std::string& file, const char* sql) {
  if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return sqlite_error(database, file);
  return Done{};
}

Status put(sqlite3* database, const std::string& file, const RunRow& row) {
  Statement s =
      TRY(Statement::prepare(database, file, "INSERT OR REPLACE INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"));
  s.bind(row.folder).bind(row.name).bind(row.started_at).bind(row.opened_at).bind(row.state);
  s.bind(row.steps).bind(row.tokens).bind(row.processes).bind(row.parameters).bind(row.loss).bind(row.bits_per_byte);
  s.bind(std::optional(row.seconds.count())).bind(row.file_bytes);
  TRY(s.step());
  return Done{};
}

Status forget(sqlite3* database, const std::string& file, const std::string& folder) {
  Statement s = TRY(Statement::prepare(database, file, "DELETE FROM runs WHERE folder = ?"));
  TRY(s.bind(folder).step());
  return Done{};
}

// Everything or nothing.
template <typename Work>
Result<int> transaction(sqlite3* database, const std::string& file, Work&& work) {
  TRY(execute(database, file, "BEGIN IMMEDIATE"));
  Result<int> done = work();
  const Status ended = execute(database, file, done.ok() ? "COMMIT" : "ROLLBACK");
  if (done.ok() && !ended.ok()) return ended.error();
  return done;
}

Status make_table(sqlite3* database, const std::string& file) {
  Statement version = TRY(Statement::prepare(database, file, "PRAGMA user_version"));
  std::int64_t number = 0;
  if (TRY(version.step())) version.read(number);
  if (number != kIndexVersion) TRY(execute(database, file, "DROP TABLE IF EXISTS runs"));
  TRY(execute(database, file, kTable));
  return execute(database, file, fmt::format("PRAGMA user_version = {}", kIndexVersion).c_str());
}

}  // namespace

void RunIndex::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

RunIndex::RunIndex(std::unique_ptr<sqlite3, Close> database, std::string file)
    : database_(std::move(database)), file_(std::move(file)) {}
RunIndex::RunIndex(RunIndex&&) noexcept = default;
RunIndex::~RunIndex() = default;

Result<RunIndex> RunIndex::open(const std::string& file) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  std::unique_ptr<sqlite3, Close> database(raw);
  if (code != SQLITE_OK) return sqlite_error(raw, file);
  sqlite3_busy_timeout(raw, 5000);
  {
    Statement version = TRY(Statement::prepare(raw, file, "PRAGMA user_version"));
    std::int64_t number = 0;
    if (TRY(version.step())) version.read(number);
    if (number == kIndexVersion) return RunIndex(std::move(database), file);
  }
  TRY(make_table(raw, file));
  return RunIndex(std::move(database), file);
}

Result<int> RunIndex::rebuild(Store& runs) {
  return transaction(database_.get(), file_, [&]() -> Result<int> {
    TRY(execute(database_.get(), file_, "DELETE FROM runs"));
    const std::vector<std::string> folders = TRY(list_runs(runs));
    for (const std::string& folder : folders) TRY(put(database_.get(), file_, TRY(summarize_run(runs, folder))));
    return static_cast<int>(folders.size());
  });
}

Result<int> RunIndex::refresh(Store& runs) {
  std::map<std::string, RunRow> known;
  for (RunRow& row : TRY(list())) known.emplace(row.folder, std::move(row));
  std::vector<RunRow> changed;
  for (const std::string& folder : TRY(list_runs(runs))) {
    const auto before = known.find(folder);
    const bool grown = before == known.end() || before->second.file_bytes != TRY(run_file_bytes(runs, folder));
    if (grown) changed.push_back(TRY(summarize_run(runs, folder)));
    if (before != known.end()) known.erase(before);
  }
  if (changed.empty() && known.empty()) return 0;
  return transaction(database_.get(), file_, [&]() -> Result<int> {
    for (const RunRow& row : changed) TRY(put(database_.get(), file_, row));
    for (const auto& [folder, row] : known) TRY(forget(database_.get(), file_, folder));
    return static_cast<int>(changed.size() + known.size());
  });
}

Result<std::vector<RunRow>> RunIndex::list() {
  Statement s =
      TRY(Statement::prepare(database_.get(), file_, "SELECT * FROM runs ORDER BY opened_at DESC, folder DESC"));
  std::vector<RunRow> rows;
  while (TRY(s.step())) {
    RunRow row;
    for (std::string* text : {&row.folder, &row.name, &row.started_at, &row.opened_at, &row.state}) s.read(*text);
    for (std::int64_t* number : {&row.steps, &row.tokens, &row.processes, &row.parameters}) s.read(*number);
    s.read(row.loss);
    s.read(row.bits_per_byte);
    std::optional<double> seconds;
    s.read(seconds);
    row.seconds = Seconds(seconds.value_or(0));
    s.read(row.file_bytes);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace systole
