#pragma once
// A thin wrapper of SQLite for the index of runs: our errors, and statements whose parameters and columns are used in
// order. One process writes at a time (SQLite's own lock, with a wait of up to five seconds).

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
  // Returns whether there is a row; then its columns can be read. Errors: io, no_space, busy, corrupt.
  Result<bool> step();
  void read(std::string& text);
  void read(std::int64_t& number);
  void read(std::optional<double>& number);
  // Allows another execution with other parameters.
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
  // Creates `file` if missing. Errors: io.
  static Result<Database> open(const std::string& file);

  // Errors of all functions: io, no_space, busy; corrupt if the file is not an index, or is damaged (hint: delete it).
  Result<Statement> prepare(const std::string& sql);
  Status execute(const std::string& sql);
  // A transaction: all of `work` or nothing; returns its result.
  template <typename Work>
  Result<int> transaction(Work&& work) {
    TRY(execute("BEGIN IMMEDIATE"));
    Result<int> done = work();
    const Status ended = execute(done.ok() ? "COMMIT" : "ROLLBACK");
    if (done.ok() && !ended.ok()) return ended.error();
    return done;
  }
  // Replaces the file's content by an empty database, under SQLite's lock; works for any file.
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
