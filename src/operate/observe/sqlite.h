#pragma once
// SQLite as the index of runs needs it: errors of ours, and statements whose parameters and columns go in their order.
// One process writes at a time (SQLite's own lock, waited for up to five seconds).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ground/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace systole {

class Statement {
 public:
  Statement& bind(const std::string& text);
  Statement& bind(std::int64_t number);
  Statement& bind(const std::optional<double>& number);
  // Whether there is a row; then its columns can be read. Errors: io, no_space, busy, corrupt.
  Result<bool> step();
  void read(std::string& text);
  void read(std::int64_t& number);
  void read(std::optional<double>& number);
  // Once more, with other parameters.
  void reset();

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3* database, const std::string& file, sqlite3_stmt* raw)
      : database_(database), file_(file), statement_(raw) {}
  sqlite3* database_;
  std::string file_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0, column_ = -1;
};

class Database {
 public:
  // `file` is made when it is not there. Errors: io.
  static Result<Database> open(const std::string& file);

  // Errors of all: io, no_space, busy; corrupt when the file is no index, or a damaged one (hint: delete it).
  Result<Statement> prepare(const std::string& sql);
  Status execute(const std::string& sql);
  // Everything that `work` does or nothing; returns what it returns.
  template <typename Work>
  Result<int> transaction(Work&& work) {
    TRY(execute("BEGIN IMMEDIATE"));
    Result<int> done = work();
    const Status ended = execute(done.ok() ? "COMMIT" : "ROLLBACK");
    if (done.ok() && !ended.ok()) return ended.error();
    return done;
  }
  // An empty database in its place, also of a file that is none, under SQLite's lock.
  Status clear();

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  Database(std::unique_ptr<sqlite3, Close> database, std::string file)
      : database_(std::move(database)), file_(std::move(file)) {}
  std::unique_ptr<sqlite3, Close> database_;
  std::string file_;
};

}  // namespace systole
