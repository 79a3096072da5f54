#include "operate/targets/ssh/ssh_text.h"

#include <optional>

#include "operate/cluster/allocation_ledger.h"
#include "operate/cluster/words.h"

namespace systole {
namespace {

std::optional<HostRun> read_run(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() != 6 || words[0] != "run") return {};
  HostRun run;
  run.run = words[1];
  run.submission = words[2];
  run.job = words[3];
  run.workload = words[4];
  std::string_view state = words[5];
  run.asked_to_stop = state.ends_with(",stop");
  state = state.substr(0, state.find(','));
  if (state == "live") {
    run.state = HostRun::State::live;
  } else if (state == "rebooted") {
    run.state = HostRun::State::rebooted;
  } else if (state != "gone") {
    return {};
  }
  return run;
}

// Problems of followers while the leader runs.
std::string troubles(const std::vector<HostAnswer>& answers) {
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : "; ") + one; };
  for (std::size_t i = 1; i < answers.size(); ++i) {
    const HostAnswer& answer = answers[i];
    if (answer.failed != nullptr) {
      add(answer.failed->message);
    } else if (answer.run == nullptr || answer.run->submission != answers[0].run->submission) {
      add(answer.host.name + " has no agent of it");
    } else if (answer.run->state != HostRun::State::live) {
      add(answer.host.name + (answer.run->state == HostRun::State::rebooted ? " was started again, without its agent"
                                                                            : " has lost its agent"));
    }
  }
  return text;
}

}  // namespace

Result<std::vector<SshHost>> read_hosts(std::string_view text) {
  std::vector<SshHost> hosts;
  while (!text.empty()) {
    const std::vector<std::string_view> words = words_of(take_line(text));
    if (words.size() != 3) return error(ErrorKind::invalid, "the list of its machines is none: '{}'", text);
    hosts.push_back({std::string(words[0]), std::string(words[1]), std::string(words[2])});
  }
  if (hosts.empty()) return error(ErrorKind::invalid, "it has no machines");
  return hosts;
}

Result<std::vector<HostRun>> read_host_runs(std::string_view text) {
  std::vector<HostRun> runs;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line == "end") return runs;
    if (line.starts_with(' ') && !runs.empty()) {
      runs.back().ledger += std::string(line.substr(1)) + "\n";
    } else if (std::optional<HostRun> run = read_run(line)) {
      runs.push_back(std::move(*run));
    }  // output of a login script
  }
  return error(ErrorKind::io, "its answer ended before it was whole");
}

JobStatus status_of(const std::vector<HostAnswer>& answers) {
  const HostRun& leader = *answers[0].run;
  JobStatus status{.id = leader.job, .run = leader.run, .submission = leader.submission};
  status.workload = leader.workload;
  for (const HostAnswer& answer : answers) status.nodes += (status.nodes.empty() ? "" : ",") + answer.host.name;
  status.allocations = read_ledger(leader.ledger);
  const AllocationInterval* interval = last_of(status.allocations, leader.job);
  if (interval != nullptr) {
    status.restarts = interval->restart;
    status.began_at = interval->began_at;
    status.ended_at = interval->ended_at.value_or(0);
  }
  if (leader.state == HostRun::State::live) {
    status.state = leader.asked_to_stop ? RunState::saving : RunState::running;
    status.ended_at = 0;
    status.reason = troubles(answers);
    return status;
  }
  if (interval != nullptr && interval->code == 0) {
    status.state = RunState::finished;
  } else if (leader.asked_to_stop) {
    status.state = RunState::stopped;
  } else {
    status.state = RunState::failed;
    status.reason =
        answers[0].host.name +
        (leader.state == HostRun::State::rebooted ? " was started again, without its agent" : " has lost its agent");
  }
  return status;
}

std::string ssh_failure(std::string_view err) {
  std::string last;
  while (!err.empty()) {
    std::string_view line = take_line(err);
    while (line.ends_with('\r') || line.ends_with('.')) line.remove_suffix(1);
    if (!line.empty()) last = line;
  }
  if (last.starts_with("ssh: ")) last.erase(0, 5);
  return last.empty() ? "ssh ended without a word" : last;
}

}  // namespace systole
