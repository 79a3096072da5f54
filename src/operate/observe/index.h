#pragma once
// The index of runs: one row a run, in SQLite, so that `systole runs` need not read every event again. It is derived:
// rebuild() makes it anew from the folders alone, and deleting the file loses nothing.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/store/store.h"
#include "operate/observe/sqlite.h"

namespace systole {

// What tells that a run's files have grown without reading them: only its last process appends, and the next one has a
// file of the next number.
struct RunExtent {
  std::int64_t event_files = 0;  // the number after that of the last one
  std::int64_t last_bytes = -1;  // of that one; -1: there is none
  std::int64_t plan_bytes = -1;  // the same
  bool operator==(const RunExtent&) const = default;
};

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
  RunExtent extent;                           // with another one the row is made again
  bool operator==(const RunRow&) const = default;
};

// From the run's files alone. Errors: io; files that do not read make a row of state damaged.
Result<RunRow> summarize_run(Store& runs, const std::string& folder);

// Of the files in its folder. Errors: io.
Result<RunExtent> run_extent(Store& runs, const std::string& folder);
// Whether they still have that extent: three looks at files, for the folder is not listed. Errors: io.
Result<bool> has_extent(Store& runs, const std::string& folder, const RunExtent& extent);
// The same without a look at the plan. Errors: io.
Result<bool> has_events(Store& runs, const std::string& folder, const RunExtent& extent);

// Bytes of the files that the row comes from; they only grow. Errors: io.
Result<std::int64_t> run_file_bytes(Store& runs, const std::string& folder);

class RunIndex {
 public:
  // Errors: as open_index.
  static Result<RunIndex> open(const std::string& file);

  // Forgets everything and reads all folders. Returns the number of runs. `refused` gets why a run cannot be read, and
  // the others are; without it that is the error. Errors: io.
  Result<int> rebuild(Store& runs, std::vector<Error>* refused = nullptr);
  // Reads the folders whose files are new or have grown, forgets those that are gone. Returns how many rows changed. A
  // run that cannot be read keeps the row that it has; `refused` as above.
  Result<int> refresh(Store& runs, std::vector<Error>* refused = nullptr);
  // Newest first.
  Result<std::vector<RunRow>> list();

 private:
  explicit RunIndex(Database database) : database_(std::move(database)) {}
  Database database_;
};

}  // namespace systole
