#pragma once
// The index of runs submitted to a cluster, as last seen. `systole runs` neither reads nor queries finished runs again;
// for the others it shows the stored row if their cluster cannot be queried. The index also keeps what a cluster
// reported about a run's machines and its ledger lacks, because the cluster may forget it. The keeper of the records
// decides what a row contains and whether it is valid: a row has the number that the keeper gave it.

#include <span>
#include <string>
#include <vector>

#include "describe/spec/run_summary.h"
#include "operate/observe/sqlite.h"

namespace systole {

constexpr const char* kIndexFile = "index.sqlite";  // in a folder of runs

struct SubmittedJob {
  std::string id;
  RunState state = RunState::unknown;
  std::string reason, nodes;
  std::int64_t restarts = 0, began_at = 0, ended_at = 0;  // times in seconds of Unix time
  bool operator==(const SubmittedJob&) const = default;
};

struct SubmittedRow {
  RunSummary summary;       // its jobs combined; `since` is the time of submission
  std::uint64_t files = 0;  // stamp of its source files; the row is rebuilt if it differs
  std::string folder, by, nodes;
  std::int64_t restarts = 0;
  double node_seconds = 0;
  std::int64_t seen_at = 0;  // when the row was current, in seconds of Unix time; 0: never
  bool over = false;         // final until its files change
  bool stale = false;        // could not be queried now; not stored
  std::string told;          // lines that its ledger lacks: the target reported them, and may forget them
  std::vector<SubmittedJob> jobs;
  bool operator==(const SubmittedRow&) const = default;
};

class SubmittedIndex {
 public:
  // Errors: as open_index.
  static Result<SubmittedIndex> open(const std::string& file);
  // Sorted by name; jobs only if requested. Errors: io, busy, corrupt.
  Result<std::vector<SubmittedRow>> list(bool with_jobs);
  // Removes `forgotten`, then inserts or replaces `rows`; all or nothing. Errors: also no_space.
  Status change(std::span<const std::string> forgotten, std::span<const SubmittedRow> rows);

 private:
  explicit SubmittedIndex(Database database) : database_(std::move(database)) {}
  Database database_;
};

}  // namespace systole
