#pragma once
// Connections to plain machines by the system's own ssh, which finds keys, names and known hosts as its user has it set
// up. Each is bounded in time; no password is ever asked for.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/fd.h"
#include "ground/process/capture.h"
#include "operate/cluster/ssh_text.h"

namespace systole {

// ssh and its options, up to the command: of one line, for the login's shell there.
std::vector<std::string> ssh_words(const SshHost& host, bool terminal, const std::string& line);

inline constexpr Seconds kHostPatience{20.0};  // then a machine counts as one that does not answer

// Runs the text of sh there and returns what it wrote. Errors: io, at the machine's name: it does not answer; invalid,
// its exit code was bad, with what it said.
Result<std::string> ask_host(const SshHost& host, const std::string& script,
                             Bytes limit = Bytes(std::int64_t{64} << 20));

// A script there that answers line by line, as long as this lives.
class HostTalk {
 public:
  static Result<HostTalk> open(const SshHost& host, const std::string& script);
  HostTalk(HostTalk&&) noexcept = default;
  ~HostTalk();  // lets the script come to its end

  Status say(std::string_view bytes);
  Status send_file(const std::string& path);
  // A line of its answer. Errors: io, none comes in this time; invalid, one longer than 64 KiB.
  Result<std::string> hear(Seconds patience = kHostPatience);
  // say and hear.
  Result<std::string> ask(const std::string& line, Seconds patience = kHostPatience);

 private:
  HostTalk(SshHost host, Fd ours, Process process)
      : host_(std::move(host)), ours_(std::move(ours)), process_(std::move(process)) {}
  Error gone();
  SshHost host_;
  Fd ours_;
  std::optional<Process> process_;
  std::string heard_;
};

// Calls it for 0 ... n - 1, several at once.
void for_each_at_once(std::size_t n, const std::function<void(std::size_t)>& act);

}  // namespace systole
