#include "operate/observe/index_tables.h"

#include <array>

namespace systole {
namespace {

constexpr std::int64_t kIndexVersion = 6;  // PRAGMA user_version; another version is rebuilt

struct Table {
  const char* name;
  const char* columns;
};
constexpr std::array<Table, 3> kTables = {
    {{"runs",
      "folder TEXT PRIMARY KEY, name TEXT, started_at TEXT, opened_at TEXT, state TEXT, problem TEXT, steps INTEGER,"
      " planned_steps INTEGER, tokens INTEGER, processes INTEGER, parameters INTEGER, loss REAL, bits_per_byte REAL,"
      " seconds REAL, event_files INTEGER, last_bytes INTEGER, plan_bytes INTEGER"},
     {"submitted",
      "run TEXT PRIMARY KEY, files INTEGER, target TEXT, id TEXT, state TEXT, reason TEXT, folder TEXT,"
      " submitted_at TEXT, submitted_by TEXT, nodes TEXT, restarts INTEGER, node_seconds REAL, dollars REAL,"
      " budget REAL, exit_code INTEGER, told TEXT, seen_at INTEGER, is_over INTEGER"},
     {"jobs",
      "run TEXT, number INTEGER, id TEXT, state TEXT, reason TEXT, nodes TEXT, restarts INTEGER, began_at INTEGER,"
      " ended_at INTEGER, PRIMARY KEY (run, number)"}}};

Result<std::int64_t> version_of(Database& database) {
  Statement version = TRY(database.prepare("PRAGMA user_version"));
  std::int64_t number = 0;
  if (TRY(version.step())) version.read(number);
  return number;
}

Result<int> make_tables(Database& database) {
  if (TRY(version_of(database)) == kIndexVersion) return 0;  // another process just did it
  for (const Table& table : kTables) {
    TRY(database.execute(fmt::format("DROP TABLE IF EXISTS {}", table.name)));
    TRY(database.execute(fmt::format("CREATE TABLE {} ({}) WITHOUT ROWID", table.name, table.columns)));
  }
  TRY(database.execute(fmt::format("PRAGMA user_version = {}", kIndexVersion)));
  return static_cast<int>(kTables.size());
}

}  // namespace

Result<Database> open_index(const std::string& file) {
  Database database = TRY(Database::open(file));
  if (TRY(version_of(database)) != kIndexVersion) TRY(database.transaction([&] { return make_tables(database); }));
  return database;
}

Result<std::size_t> row_count(Database& database, const std::string& table) {
  Statement s = TRY(database.prepare(fmt::format("SELECT COUNT(*) FROM {}", table)));
  std::int64_t count = 0;
  if (TRY(s.step())) s.read(count);
  return static_cast<std::size_t>(count);
}

Status clear_index(const std::string& file) { return TRY(Database::open(file)).clear(); }

}  // namespace systole
