#pragma once
// What plain machines are called, and what they tell of the runs that they hold.

#include <string>
#include <string_view>
#include <vector>

#include "operate/cluster/cluster.h"

namespace systole {

struct SshHost {
  std::string port, login, name;  // '-' for ssh's own port; as ssh takes it; as the machines reach each other
  bool operator==(const SshHost&) const = default;
  auto operator<=>(const SshHost&) const = default;
};
// The lines of a record's where["hosts"], the first leads. Errors: invalid.
Result<std::vector<SshHost>> read_hosts(std::string_view text);

// A run as one machine holds it.
struct HostRun {
  enum class State { live, gone, rebooted };
  std::string run, submission, job, workload;
  State state = State::gone;
  bool asked_to_stop = false;
  std::string ledger;
};
// What HostAct::look wrote. Errors: io, it is not whole.
Result<std::vector<HostRun>> read_host_runs(std::string_view text);

// What one machine said of a run: nothing where it holds none, or the error of asking it.
struct HostAnswer {
  SshHost host;
  const HostRun* run = nullptr;
  const Error* failed = nullptr;
};
// The run that the machines of `answers`, the first of which leads and answered that it has it, are at together.
Seen seen_by(const std::vector<HostAnswer>& answers);

// What ssh said that kept it from its machine, in its words.
std::string ssh_failure(std::string_view err);

}  // namespace systole
