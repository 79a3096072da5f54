#pragma once
// The rank processes of one node: started, heard, signalled and reaped. Each leads a process group, dies with the
// thread that started it, and is known to a guard that kills its group when this process is gone. What a rank says goes
// to a file of its own, per generation, and line by line to the caller. One thread.

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

  // Logs go to `log_folder`/rank-3.generation-2.log; the folder must be there.
  static Result<std::unique_ptr<LocalRanks>> make(std::string log_folder, LineSink line);
  ~LocalRanks();  // kills them all

  // REQUIRES: no rank of another generation runs. The command's streams, group and ties are set here.
  // Errors: as Process::start; no_space, io (its log).
  Status start(std::uint64_t generation, int rank, Command command);

  // Reads what the ranks say, for at most `wait` until there is something, and returns those that ended, the gravest
  // first: killed by a signal before those with an exit code.
  std::vector<RankExited> poll(Seconds wait);

  void signal(int number);  // to each group
  void kill() { signal(9); }
  bool empty() const { return ranks_.empty(); }
  std::vector<int> running() const;
  std::uint64_t generation() const { return generation_; }
  pid_t pid_of(int rank) const;  // -1: does not run

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
