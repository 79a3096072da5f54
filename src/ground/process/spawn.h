#pragma once
// Child processes: start, signal, wait, and clean up. A child leads its own process group, so stopping it stops
// everything it started. Destroying a Process kills that group and reaps the child.
//
// Uses fork and exec. Between them the child calls only functions that are safe in a process with threads; a failure
// there is returned to the caller as an Error.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"

struct rusage;

namespace systole {

// The source or target of a child's stream.
struct ChildStream {
  enum class Kind { inherit, null, pipe, file, append, descriptor };
  Kind kind = Kind::inherit;
  std::string path;     // file (truncated; read for stdin), append
  int descriptor = -1;  // borrowed

  static ChildStream null() { return {Kind::null, {}, -1}; }
  static ChildStream pipe() { return {Kind::pipe, {}, -1}; }  // our end is Process::in, out or err
  static ChildStream file(std::string path) { return {Kind::file, std::move(path), -1}; }
  static ChildStream append(std::string path) { return {Kind::append, std::move(path), -1}; }
  static ChildStream to(int descriptor) { return {Kind::descriptor, {}, descriptor}; }
};

struct Command {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH if it has no '/'
  std::vector<std::pair<std::string, std::optional<std::string>>> env = {};  // set or removed, on top of ours
  bool clean_env = false;                                                    // use only `env`
  std::string cwd = {};                                                      // "" is our working folder
  ChildStream in = {}, out = {}, err = {};
  std::vector<std::pair<int, std::uint64_t>> limits = {};  // RLIMIT_..., soft and hard
  bool own_group = true;
  bool dies_with_parent = false;  // gets SIGKILL when the thread that started it ends
  int announce = -1;              // a borrowed socket; the child sends its pid to it before exec
};

// The end of a child: an exit code, or the signal that killed it.
struct Exit {
  int code = 0;
  int signal = 0;
  Bytes peak_resident{};
  Seconds user_time{}, system_time{};
  bool ok() const { return code == 0 && signal == 0; }
};
std::string to_string(const Exit& exit);  // "exit code 3", "killed by SIGKILL"

// The path of the program that would run. Errors: not_found, with a hint.
Result<std::string> find_program(const std::string& name);

class Process {
 public:
  // Errors: not_found (program, cwd), io (not executable, limits, too many processes).
  static Result<Process> start(const Command& command);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();  // kills the group if the child was not reaped

  pid_t pid() const { return pid_; }
  // Our ends of the pipes; -1 if none. close_in signals end of input to the child.
  int in() const { return streams_[0]; }
  int out() const { return streams_[1]; }
  int err() const { return streams_[2]; }
  void close_in();

  Status signal(int number);        // to the child; fine if it is gone
  Status signal_group(int number);  // to its group; fine if it is gone
  bool has_ended() const;           // does not reap it: its pid and group id stay reserved
  std::optional<Exit> poll();       // reaps it if it has ended
  Exit wait();
  std::optional<Exit> wait(Seconds timeout);
  // Sends SIGTERM to the group, and SIGKILL after `grace`.
  Exit stop(Seconds grace);

 private:
  Process() = default;
  Exit reap(int status, const ::rusage& usage);

  pid_t pid_ = -1;
  bool own_group_ = true;
  int streams_[3] = {-1, -1, -1};
  std::optional<Exit> ended_;
};

}  // namespace systole
