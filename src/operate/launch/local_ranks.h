#pragma once
// The rank processes of one node: starts, reads, signals and reaps them. Each rank leads a process group, dies with the
// thread that started it, and is registered with a guard that kills its group when this process is gone. A rank's
// output goes to its own file, per generation, and line by line to the caller. One thread.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ground/process/spawn.h"
#include "operate/launch/membership_events.h"
#include "operate/launch/orphan_guard.h"

namespace systole {

class LocalRanks {
 public:
  using LineSink = std::function<void(int rank, std::string_view line)>;

  // Logs go to `log_folder`/rank-3.generation-2.log; the folder must exist.
  static Result<std::unique_ptr<LocalRanks>> make(std::string log_folder, LineSink line);
  ~LocalRanks();  // kills them all

  // Sets the command's streams, group and death signal. REQUIRES: no rank of another generation runs. Errors: as
  // Process::start; no_space, io (its log).
  Status start(std::uint64_t generation, int rank, Command command);

  // Waits up to `wait` for output, reads it, and returns the ranks that ended, the most severe first: those killed by a
  // signal before those with an exit code.
  std::vector<RankExited> poll(Seconds wait);

  void signal(int number);  // to each rank's group
  void kill() { signal(9); }
  bool empty() const { return ranks_.empty(); }
  std::vector<int> running() const;
  std::uint64_t generation() const { return generation_; }
  pid_t pid_of(int rank) const;  // -1: not running

  static std::string log_name(std::uint64_t generation, int rank);

 private:
  struct Running;
  LocalRanks(std::string log_folder, LineSink line, OrphanGuard guard);
  void read_from(int rank, Running& running);
  void take(int rank, Running& running, std::string_view text);
  RankExited finish(int rank, Running& running);

  std::string folder_;
  LineSink line_;
  OrphanGuard guard_;
  std::uint64_t generation_ = 0;
  std::map<int, std::unique_ptr<Running>> ranks_;
};

}  // namespace systole
