#pragma once
// The records of what was submitted, in the folder `.submitted` of a folder of runs:
//
//   .submitted/RUN/record.json     which run, where, under which number
//                 workload.yaml, plan.json   what it was rendered from; not of a run that was adopted
//                 files/           what was rendered, held to its digests where it starts
//                 ledger           a line where each of its jobs began and ended (ledger.h)
//                 stop             there while it has been asked to stop
//                 ID.log           what job ID writes
//   .submitted/.programs/SHA256    the program that its machines start; no run's name begins with '.'
//   .submitted/audit.jsonl         every act (audit.h)
//
// Any machine that sees the folder can go on with any run in it.

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
#include "ground/store/lock.h"
#include "ground/store/store.h"

namespace systole {

inline constexpr const char* kProgramsFolder = ".programs";  // of `.submitted`

struct Record {
  std::string run, target;
  std::string submission;    // 16 hex digits; another each time that it is sent
  std::string id;            // the target's own name; empty: being sent
  std::string from;          // absolute: the folder in which relative names of the workload lie
  std::string place;         // absolute: this run's folder of `.submitted`
  std::string program;       // absolute: the program that is started
  std::string folder;        // of the run, as its machines name it
  std::string submitted_at;  // ISO 8601 UTC
  std::string by;            // user@host
  std::string workload_sha256, plan_sha256, program_sha256;
  bool array = false;                        // its jobs are tasks, each with a folder of its own: FOLDER.INDEX
  std::vector<std::string> after;            // ids of the same target: it begins when these are done
  std::string audit;                         // the hash of the audit's line that tells of it
  std::optional<double> usd_per_hour;        // of all its machines together, by the plan; nothing: unknown
  std::optional<double> budget;              // dollars
  std::vector<std::string> earlier;          // ids that it had before
  std::map<std::string, std::string> where;  // what the target finds it by, in its words: hosts, a namespace
  bool operator==(const Record&) const = default;
};
inline std::string ledger_of(const Record& record) { return record.place + "/ledger"; }
Node to_node(const Record& record);
// Errors: invalid, at its place.
Result<Record> record_of(const Node& node);

class Submissions {
 public:
  // Where they are, or would be: open makes it. Errors: io.
  static Result<std::string> path_below(const std::string& runs);
  // Below `runs`, which is made when it is not there. Errors: io.
  static Result<Submissions> open(const std::string& runs);
  // Nothing when nothing was ever submitted from there; makes nothing. Errors: io.
  static Result<std::optional<Submissions>> open_if_there(const std::string& runs);

  // Of the runs' folders, in order; one may hold no record. Errors: io.
  Result<std::vector<std::string>> names();
  // By name. Errors: io, corrupt.
  Result<std::vector<Record>> list();
  Result<std::optional<Record>> find(const std::string& run);
  Status write(const Record& record);
  Status remove(const std::string& run);  // its whole folder

  const std::string& path() const { return path_; }  // absolute
  std::string place(const std::string& run) const { return path_ + "/" + run; }
  Store& store() { return *store_; }
  // One act at a time on a run. Errors: busy, io.
  Result<std::unique_ptr<FileLock>> lock(const std::string& run);
  // Held from where a program is placed to where a record names it, and where one that none names is taken away.
  // Errors: busy, io.
  Result<std::unique_ptr<FileLock>> lock_programs(Clock& clock);
  // Where no record names it. Errors: busy, io, corrupt.
  Status remove_program(const std::string& sha256, Clock& clock);
  void remove_if_empty();  // the folder, and that of the runs; it is not used afterwards

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
