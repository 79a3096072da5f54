#pragma once
// Records of submissions, in the folder `.submitted` of a folder of runs:
//
//   .submitted/RUN/record.json     which run, where, under which number
//                 workload.yaml, plan.json   the rendered inputs; absent for an adopted run
//                 files/           the rendered files; their digests are verified where they start
//                 ledger           lines when each of its jobs began and ended (allocation_ledger.h)
//                 stop             exists once a stop was requested
//                 ID.log           output of job ID
//   .submitted/.programs/SHA256    the program that its machines start; no run's name begins with '.'
//   .submitted/audit.jsonl         every act (audit.h)
//
// Any machine that sees the folder can manage any run in it.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/document.h"
#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/store/lock.h"
#include "ground/store/store.h"

namespace systole {

inline constexpr const char* kProgramsFolder = ".programs";  // below `.submitted`

struct Record {
  std::string run, target;
  std::string submission;    // 16 hex digits; new for each submission
  std::string id;            // the target's id; empty: submission in progress
  std::string from;          // absolute: base of the workload's relative paths
  std::string place;         // absolute: this run's folder in `.submitted`
  std::string program;       // absolute: the program to start
  std::string folder;        // of the run, as its machines name it
  std::string submitted_at;  // ISO 8601 UTC
  std::string by;            // user@host
  std::string workload_sha256, plan_sha256, program_sha256;
  bool array = false;  // its jobs are tasks, each with its own folder: FOLDER.INDEX
  std::vector<std::string>
      after;          // ids on the same target: it begins when these are done; empty if the target has no chains
  std::string audit;  // hash of the audit log's line about it
  std::optional<DollarsPerHour> usd_per_hour;  // of all its machines together, by the plan; nothing: unknown
  std::optional<Dollars> budget;
  std::vector<std::string> earlier;          // its earlier ids
  std::map<std::string, std::string> where;  // how the target finds it: hosts, a namespace
  bool operator==(const Record&) const = default;
};
inline std::string ledger_of(const Record& record) { return record.place + "/ledger"; }
Node to_node(const Record& record);
// Errors: invalid, at its position.
Result<Record> record_of(const Node& node);

class Submissions {
 public:
  // Path of the submissions; `open` creates it. Errors: io.
  static Result<std::string> path_below(const std::string& runs);
  // Below `runs`, which is created if missing. Errors: io.
  static Result<Submissions> open(const std::string& runs);
  // Nothing if nothing was ever submitted from there; creates nothing. Errors: io.
  static Result<std::optional<Submissions>> open_if_there(const std::string& runs);

  // Names of the runs' folders, sorted; one may have no record. Errors: io.
  Result<std::vector<std::string>> names();
  // Sorted by name. Errors: io, corrupt.
  Result<std::vector<Record>> list();
  Result<std::optional<Record>> find(const std::string& run);
  Status write(const Record& record);
  Status forget(const std::string& run);  // only its record
  Status remove(const std::string& run);  // its whole folder

  static std::string place_below(const std::string& path, const std::string& run) { return path + "/" + run; }
  const std::string& path() const { return path_; }  // absolute
  std::string place(const std::string& run) const { return place_below(path_, run); }
  Store& store() { return *store_; }  // valid until the next lock
  // Serializes the acts on a run. Recreates the folder if another process's remove_if_empty removed it. Errors: busy,
  // io.
  Result<std::unique_ptr<FileLock>> lock(const std::string& run);
  // Held from placing a program until a record names it, and while an unused one is removed. Errors: busy, io.
  Result<std::unique_ptr<FileLock>> lock_programs(Clock& clock);
  // Removes a program that no record names. Errors: busy, io, corrupt.
  Status remove_program(const std::string& sha256, Clock& clock);
  void remove_if_empty();  // removes the folder, and the folder of runs; it is not used afterwards

 private:
  Submissions(std::string path, std::unique_ptr<Store> store) : path_(std::move(path)), store_(std::move(store)) {}
  Result<std::unique_ptr<FileLock>> locked(const std::string& folder,
                                           const std::function<Result<std::unique_ptr<FileLock>>()>& lock);
  std::string path_;
  std::unique_ptr<Store> store_;
};

// user@host of this process, for records.
std::string who_and_where();

}  // namespace systole
