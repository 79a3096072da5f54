#pragma once
// A job of `systole batch`, as a target runs it: its file, and what of it concerns the target. Its workload is the
// machines that it says, with a command that stands for it.

#include <optional>
#include <string>
#include <vector>

#include "describe/spec/cron_schedule.h"
#include "operate/render/cluster_job.h"

namespace systole {

struct BatchTask {
  std::string file;                                 // the job, without what concerns targets alone
  std::string model, input, output, chat_template;  // the last: "" if there is none
  std::optional<CronSchedule> schedule = {};
  bool is_shared = false;  // any number of processes compute it together
};

// "systole batch FILE …", as it runs on a machine of the job.
inline std::vector<std::string> batch_words(const BatchTask& task, const ClusterJob& job, const std::string& file) {
  std::vector<std::string> words{"systole", "batch", file};
  if (task.schedule) words.emplace_back("--due");
  if (job.devices_per_node() > 0) words.insert(words.end(), {"--device", job.tpu() ? "tpu" : "gpu"});
  return words;
}

// The paths that the job reads, with their keys.
inline std::vector<std::pair<const char*, std::string>> read_paths(const BatchTask& task) {
  std::vector<std::pair<const char*, std::string>> paths{{"model", task.model}, {"input", task.input}};
  if (!task.chat_template.empty()) paths.emplace_back("chat_template", task.chat_template);
  return paths;
}

// Where nothing carries them to the job. Errors: unsupported: it has some.
inline Status refuse_environment(const Workload& workload, const char* target) {
  if (workload.env.empty() && workload.secrets.empty()) return {};
  return key_error(ErrorKind::unsupported, workload.env.empty() ? "secrets" : "env",
                   "{} gives a batch no variables of its own", target)
      .hinted("take it out of cluster; or render for kubernetes");
}

}  // namespace systole
