#pragma once
// Connections to plain machines by the system's ssh, with the user's keys, host names and known hosts. Each has a time
// limit; ssh never asks for a password.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/fd.h"
#include "ground/process/capture.h"
#include "operate/targets/ssh/ssh_text.h"

namespace systole {

// ssh and its options, up to the command, which is one line for the remote login shell.
std::vector<std::string> ssh_words(const SshHost& host, bool terminal, const std::string& line);

inline constexpr Seconds kHostPatience{20.0};  // after that a machine counts as not answering

// Runs a script of sh there and returns its output. Errors: io, at the machine's name: it does not answer; invalid, a
// nonzero exit code, with its message.
Result<std::string> ask_host(const SshHost& host, const std::string& script,
                             Bytes limit = Bytes(std::int64_t{64} << 20));

// A remote script that answers line by line, as long as this object lives.
class HostSession {
 public:
  static Result<HostSession> open(const SshHost& host, const std::string& script);
  HostSession(HostSession&&) noexcept = default;
  ~HostSession();  // lets the script end

  Status say(std::string_view bytes);
  Status send_file(const std::string& path);
  // Reads a line of its answer. Errors: io, none within the patience; invalid, longer than 64 KiB.
  Result<std::string> hear(Seconds patience = kHostPatience);
  // say and hear.
  Result<std::string> ask(const std::string& line, Seconds patience = kHostPatience);

 private:
  HostSession(SshHost host, Fd ours, Process process)
      : host_(std::move(host)), ours_(std::move(ours)), process_(std::move(process)) {}
  Error gone();
  SshHost host_;
  Fd ours_;
  std::optional<Process> process_;
  std::string heard_;
};

// Calls `act` for 0 ... n - 1, several in parallel.
void for_each_at_once(std::size_t n, const std::function<void(std::size_t)>& act);

}  // namespace systole
