#include "operate/observe/sqlite.h"

#include <sqlite3.h>

namespace systole {
namespace {

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

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement& Statement::bind(const std::string& text) {
  sqlite3_bind_text(statement_.get(), ++bound_, text.c_str(), -1, SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::bind(std::int64_t number) {
  sqlite3_bind_int64(statement_.get(), ++bound_, number);
  return *this;
}

Statement& Statement::bind(const std::optional<double>& number) {
  ++bound_;
  if (number) sqlite3_bind_double(statement_.get(), bound_, *number);
  return *this;
}

Result<bool> Statement::step() {
  column_ = -1;
  switch (sqlite3_step(statement_.get())) {
    case SQLITE_ROW: return true;
    case SQLITE_DONE: return false;
    default: return sqlite_error(database_, file_);
  }
}

void Statement::read(std::string& text) {
  const unsigned char* bytes = sqlite3_column_text(statement_.get(), ++column_);
  text = bytes == nullptr ? "" : reinterpret_cast<const char*>(bytes);
}

void Statement::read(std::int64_t& number) { number = sqlite3_column_int64(statement_.get(), ++column_); }

void Statement::read(std::optional<double>& number) {
  ++column_;
  number.reset();
  if (sqlite3_column_type(statement_.get(), column_) != SQLITE_NULL)
    number = sqlite3_column_double(statement_.get(), column_);
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  bound_ = 0;
}

void Database::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Result<Database> Database::open(const std::string& file) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  Database database(std::unique_ptr<sqlite3, Close>(raw), file);
  if (code != SQLITE_OK) return sqlite_error(raw, file);
  sqlite3_busy_timeout(raw, 5000);
  return database;
}

Result<Statement> Database::prepare(const std::string& sql) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &raw, nullptr) != SQLITE_OK)
    return sqlite_error(database_.get(), file_);
  return Statement(database_.get(), file_, raw);
}

Status Database::execute(const std::string& sql) {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return sqlite_error(database_.get(), file_);
  return Done{};
}

// sqlite.org/c3ref/c_dbconfig_defensive.html: the only safe way while other processes have it open.
Status Database::clear() {
  sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_RESET_DATABASE, 1, nullptr);
  const Status done = execute("VACUUM");
  sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_RESET_DATABASE, 0, nullptr);
  return done;
}

}  // namespace systole
