#include "operate/targets/slurm/slurm_text.h"

#include <algorithm>

#include "operate/cluster/words.h"

namespace systole {
namespace {

constexpr char kEnd = '\x1f';
constexpr std::string_view kLabel = "systole/run=";

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t end; (end = line.find(kEnd)) != line.npos; line.remove_prefix(end + 1))
    fields.push_back(line.substr(0, end));
  return fields;
}

// Explains why a job waits; other reasons are clear. squeue(1), "JOB REASON CODES".
std::string describe_reason(std::string_view reason) {
  if (reason == "None") return "";
  if (reason == "Resources") return "Resources: its machines are in use";
  if (reason == "Priority") return "Priority: others are before it";
  if (reason == "BeginTime") return "BeginTime: it may begin again in a moment";
  if (reason == "Dependency") return "Dependency: it waits for another job";
  if (reason == "DependencyNeverSatisfied") return "DependencyNeverSatisfied: the job that it waits for failed";
  if (reason.starts_with("ReqNodeNotAvail")) return std::string(reason) + ": a node that it needs is down or set aside";
  return std::string(reason);
}

}  // namespace

const char* const kSqueueFormat =
    "JobArrayID:\x1f,State:\x1f,Reason:\x1f,RestartCnt:\x1f,Comment:\x1f,StartTime:\x1f,EndTime:\x1f,NodeList:\x1f";

std::string slurm_label(std::string_view run, std::string_view submission) {
  return fmt::format("{}{}/{}", kLabel, run, submission);
}

RunState state_of_slurm(std::string_view state, std::int64_t restarts) {
  const auto is = [&](std::initializer_list<std::string_view> names) { return std::ranges::count(names, state) > 0; };
  if (is({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}))
    return restarts > 0 ? RunState::preempted : RunState::queued;
  if (is({"CONFIGURING"})) return RunState::starting;
  if (is({"RUNNING", "RESIZING", "SUSPENDED", "STOPPED"})) return RunState::running;
  if (is({"COMPLETING", "SIGNALING", "STAGE_OUT"})) return RunState::saving;
  if (is({"COMPLETED"})) return RunState::finished;
  if (is({"CANCELLED", "REVOKED"})) return RunState::stopped;
  if (is({"PREEMPTED"})) return RunState::preempted;
  if (is({"FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"})) return RunState::failed;
  return RunState::unknown;
}

std::vector<JobStatus> read_squeue(std::string_view text) {
  std::vector<JobStatus> jobs;
  while (!text.empty()) {
    const std::vector<std::string_view> fields = fields_of(take_line(text));
    if (fields.size() != 8 || !fields[4].starts_with(kLabel)) continue;
    const std::string_view label = fields[4].substr(kLabel.size());
    JobStatus job;
    job.id = fields[0];
    job.run = label.substr(0, label.find('/'));
    if (label.size() > job.run.size()) job.submission = label.substr(job.run.size() + 1);
    job.restarts = number_of(fields[3]).value_or(0);
    job.state = state_of_slurm(fields[1], job.restarts);
    const bool waits = job.state == RunState::queued || job.state == RunState::preempted;
    if (waits || job.state == RunState::failed) job.reason = describe_reason(fields[2]);
    if (job.state == RunState::failed)
      job.reason = std::string(fields[1]) + (job.reason.empty() ? "" : ": " + job.reason);
    if (job.state == RunState::running && fields[1] != "RUNNING") job.reason = fields[1];
    job.nodes = fields[7] == "(null)" ? "" : fields[7];
    if (!job.nodes.empty()) job.began_at = number_of(fields[5]).value_or(0);
    if (is_over(job.state)) job.ended_at = number_of(fields[6]).value_or(0);  // "N/A"
    jobs.push_back(std::move(job));
  }
  return jobs;
}

Result<std::string> read_sbatch(std::string_view text) {
  const std::string_view id = text.substr(0, text.find_first_of(";\n"));
  if (!id.empty() && id.find_first_not_of("0123456789") == id.npos) return std::string(id);
  return error(ErrorKind::io, "sbatch took it and named no job: '{:.60}'", text);
}

bool has_machines_away(std::string_view states) {
  constexpr std::string_view kHere[] = {"idle", "mixed", "allocated", "completing", "reserved", "planned"};
  while (!states.empty()) {
    const std::string_view line = take_line(states);
    if (line.empty()) continue;
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view state = line.substr(0, space), version = line.substr(std::min(space + 1, line.size()));
    if (std::ranges::count(kHere, state) == 0 || version.empty() || version == "N/A") return true;
  }
  return false;
}

}  // namespace systole
