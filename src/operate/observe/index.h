#pragma once
// The index of runs: one row per run, in SQLite, so that `systole runs` need not read every event again. It is derived
// data: rebuild() recreates it from the folders alone, and deleting the file loses nothing.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "describe/spec/run_summary.h"
#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/store/store.h"
#include "operate/observe/sqlite.h"

namespace systole {

// Detects that a run's files have grown without reading them: only its last process appends, and the next one gets a
// file with the next number.
struct RunExtent {
  std::int64_t event_files = 0;  // number of the last one + 1
  std::int64_t last_bytes = -1;  // of the last event file; -1: none
  std::int64_t plan_bytes = -1;  // -1: none
  bool operator==(const RunExtent&) const = default;
};

struct RunRow {
  // run: its folder, below the folder of runs. state: by its events alone, so `running` if its last process recorded no
  // end (state_with); `damaged` if its files cannot be read.
  RunSummary summary;
  std::string opened_at;  // when the last process opened it; ISO 8601 UTC
  std::int64_t processes = 0, parameters = 0;
  Seconds seconds{};  // total of all its processes
  RunExtent extent;   // the row is recomputed when this changes
  bool operator==(const RunRow&) const = default;
};

// From the run's files alone. Errors: io; unreadable files give a row of state damaged.
Result<RunRow> summarize_run(Store& runs, const std::string& folder);

// From the files in its folder. Errors: io.
Result<RunExtent> run_extent(Store& runs, const std::string& folder);
// Whether the files still have that extent: three file look-ups, without listing the folder. Errors: io.
Result<bool> has_extent(Store& runs, const std::string& folder, const RunExtent& extent);
// The same, ignoring the plan. Errors: io.
Result<bool> has_events(Store& runs, const std::string& folder, const RunExtent& extent);

// Total bytes of the row's source files; they only grow. Errors: io.
Result<std::int64_t> run_file_bytes(Store& runs, const std::string& folder);

class RunIndex {
 public:
  // Errors: as open_index.
  static Result<RunIndex> open(const std::string& file);

  // Clears the index and reads all folders. Returns the number of runs. An unreadable run goes to `refused`, and the
  // others are read; without `refused` it is an error. Errors: io.
  Result<int> rebuild(Store& runs, std::vector<Error>* refused = nullptr);
  // Reads folders whose files are new or have grown, and removes rows of missing folders. Returns the number of changed
  // rows. An unreadable run keeps its row; `refused` as above.
  Result<int> refresh(Store& runs, std::vector<Error>* refused = nullptr);
  // Newest first.
  Result<std::vector<RunRow>> list();
  // Both, reading the rows once if none changed.
  Result<std::vector<RunRow>> refreshed(Store& runs, std::vector<Error>* refused = nullptr);

 private:
  explicit RunIndex(Database database) : database_(std::move(database)) {}
  Result<std::vector<RunRow>> rows();
  // Of these rows, all that there are.
  Result<int> refresh(const std::vector<RunRow>& all, Store& runs, std::vector<Error>* refused);

  Database database_;
};

}  // namespace systole
