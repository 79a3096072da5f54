#pragma once
// Names of plain machines, and their reports about runs.

#include <string>
#include <string_view>
#include <vector>

#include "operate/cluster/cluster.h"

namespace systole {

struct SshHost {
  std::string port, login, name;  // '-': ssh's default port; name for ssh; name between machines
  bool operator==(const SshHost&) const = default;
  auto operator<=>(const SshHost&) const = default;
};
// Parses the lines of a record's where["hosts"]; the first leads. Errors: invalid.
Result<std::vector<SshHost>> read_hosts(std::string_view text);

// A run as seen by one machine.
struct HostRun {
  enum class State { live, gone, rebooted };
  std::string run, submission, job, workload;
  State state = State::gone;
  bool asked_to_stop = false;
  std::string ledger;
};
// Parses the output of HostCommand::query. Errors: io, it is truncated.
Result<std::vector<HostRun>> read_host_runs(std::string_view text);

// One machine's answer about a run: nothing if it has none, or the error of the query.
struct HostAnswer {
  SshHost host;
  const HostRun* run = nullptr;
  const Error* failed = nullptr;
};
// The combined state of a run. REQUIRES: the first of `answers` is the leader, and has the run.
JobStatus status_of(const std::vector<HostAnswer>& answers);

// ssh's message for a failed connection.
std::string ssh_failure(std::string_view err);

}  // namespace systole
