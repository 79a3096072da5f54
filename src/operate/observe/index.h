#pragma once
// The index of runs: one row a run, in SQLite, so that `systole runs` need not read every event again. It is derived:
// rebuild() makes it anew from the folders alone, and deleting the file loses nothing.
//
// One process writes at a time (SQLite's own lock, waited for up to five seconds).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/store/store.h"

struct sqlite3;

namespace systole {

struct RunRow {
  std::string folder;                 // its name below the folder of runs
  std::string name;                   // of the workload
  std::string started_at, opened_at;  // by the first process, by the last; ISO 8601 UTC
  // How the last process ended: finished, stopped, diverged, error; open when it says nothing: it runs, or was killed;
  // damaged when its files do not read.
  std::string state;
  std::int64_t steps = 0, tokens = 0, processes = 0, parameters = 0;
  std::optional<double> loss, bits_per_byte;  // the last of each
  Seconds seconds{};                          // of all its processes
  std::int64_t file_bytes = 0;                // of its events and plan: when it changes the row is made again
  bool operator==(const RunRow&) const = default;
};

// From the run's files alone. Errors: io; files that do not read make a row of state damaged.
Result<RunRow> summarize_run(Store& runs, const std::string& folder);

// Bytes of the files that the row comes from; they only grow. Errors: io.
Result<std::int64_t> run_file_bytes(Store& runs, const std::string& folder);

class RunIndex {
 public:
  // `file` is made when it is not there. Errors: io; corrupt when it is no index (hint: delete it).
  static Result<RunIndex> open(const std::string& file);
  RunIndex(RunIndex&&) noexcept;
  ~RunIndex();

  // Forgets everything and reads all folders. Returns the number of runs. Errors: io.
  Result<int> rebuild(Store& runs);
  // Reads the folders whose files are new or have grown, forgets those that are gone. Returns how many rows changed.
  Result<int> refresh(Store& runs);
  // Newest first.
  Result<std::vector<RunRow>> list();

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit RunIndex(std::unique_ptr<sqlite3, Close> database, std::string file);
  std::unique_ptr<sqlite3, Close> database_;
  std::string file_;
};

}  // namespace systole
