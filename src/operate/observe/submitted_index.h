#pragma once
// The index of the runs that were submitted to a cluster, as they were seen last. Of those that are over `systole runs`
// neither reads the records again nor asks; of the others it tells what it has where their cluster cannot be asked.
// What makes a row, and whether it still holds, is for whoever keeps the records: a row has the number that they gave
// it.

#include <span>
#include <string>
#include <vector>

#include "operate/observe/sqlite.h"

namespace systole {

struct SubmittedJob {
  std::string id, state, reason, nodes;
  std::int64_t restarts = 0, began_at = 0, ended_at = 0;  // the latter in seconds of Unix time
  bool operator==(const SubmittedJob&) const = default;
};

struct SubmittedRow {
  std::string run;
  std::uint64_t files = 0;  // of what it comes from: with another number it is to be made again
  std::string target, id, state, reason, folder, submitted_at, by, nodes;
  std::int64_t restarts = 0;
  double node_seconds = 0;
  std::optional<double> dollars;  // nothing: nobody knows the price
  std::optional<double> budget;   // dollars
  std::int64_t seen_at = 0;       // when it was as the row has it, in seconds of Unix time; 0: never
  bool over = false;              // while its files are those nothing changes any more
  bool stale = false;             // it could not be asked now; not kept
  std::vector<SubmittedJob> jobs;
  bool operator==(const SubmittedRow&) const = default;
};

class SubmittedIndex {
 public:
  // Errors: as open_index.
  static Result<SubmittedIndex> open(const std::string& file);
  // By name; their jobs only where they are asked for. Errors: io, busy, corrupt.
  Result<std::vector<SubmittedRow>> list(bool with_jobs);
  // Forgets those, then takes in these, in place of what it has of them; all or nothing. Errors: also no_space.
  Status change(std::span<const std::string> forgotten, std::span<const SubmittedRow> rows);

 private:
  explicit SubmittedIndex(Database database) : database_(std::move(database)) {}
  Database database_;
};

}  // namespace systole
