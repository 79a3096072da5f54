#pragma once
// A replica: a child process that serves the model on loopback, for a balancer in this one (execute/serve/balance). Other
// users of the machine cannot ask it: requests show a token that is drawn with each start and given to it by a pipe. It
// leads a process group, so that Ctrl-C at a terminal reaches its parent alone, and is killed by the kernel when the
// thread that started it ends, however that comes.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/document.h"
#include "ground/net/socket.h"
#include "ground/process/spawn.h"

namespace systole {

class ReplicaProcess {
 public:
  // `argv`: the program and the options of `systole serve`; those of its place are added, and `run` behind them.
  // Errors: those of Process::start; io.
  static Result<ReplicaProcess> start(std::vector<std::string> argv, const std::string& run);

  // Reads what it has written since and gives each line of stderr.
  void read(const std::function<void(const std::string& line)>& line);
  // What it says of itself once it listens, the document of `systole serve --json`; nothing before.
  const std::optional<Node>& said() const { return said_; }
  NetAddress address() const;  // REQUIRES: said()
  const std::string& token() const { return token_; }
  // Why it ended before it served, as it said itself or by its exit.
  Error failure(const Exit& exit) const;

  bool has_ended() const { return process_.has_ended(); }
  Process& process() { return process_; }

 private:
  ReplicaProcess(Process process, std::string token) : process_(std::move(process)), token_(std::move(token)) {}
  void take_lines(std::string_view text, const std::function<void(const std::string& line)>& line);

  Process process_;
  std::string token_;
  std::string out_;   // all of stdout
  std::string line_;  // of stderr, unfinished
  std::optional<Node> said_;
};

}  // namespace systole
