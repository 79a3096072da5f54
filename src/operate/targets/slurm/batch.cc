// job.sbatch: starts one agent per node, all together, and requeues itself after a preemption, a time limit or a lost
// node.
#include "operate/targets/slurm/batch.h"

#include <cmath>

#include "ground/base/errors.h"
#include "operate/render/network_profile.h"
#include "operate/render/quote.h"
#include "operate/render/start_script.h"
#include "operate/render/template.h"
#include "operate/targets/picture.h"
#include "operate/targets/slurm/batch_task.h"
#include "operate/targets/slurm/server.h"

namespace systole {
namespace {

// Slurm checks once a minute for jobs to signal, so its signal may be this much late.
constexpr double kSignalSlack = 60;

std::string limit_text(Seconds longest) {  // D-HH:MM:SS
  const auto seconds = static_cast<std::int64_t>(std::ceil(longest.count()));
  return fmt::format("{}-{:02}:{:02}:{:02}", seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
}

class Options {
 public:
  void add(const char* option, std::string_view value) {
    Result<std::string> safe = sbatch_value(fmt::format("slurm: --{}", option), value);
    if (safe.ok()) {
      text_ += fmt::format("#SBATCH --{}={}\n", option, *safe);
    } else {
      wrong_.push_back(safe.error());
    }
  }
  void add_if(const char* option, const std::string& value) {
    if (!value.empty()) add(option, value);
  }
  void flag(const char* option) { text_ += fmt::format("#SBATCH --{}\n", option); }
  Result<std::string> text() && {
    if (wrong_.empty()) return std::move(text_);
    return together(std::move(wrong_));
  }

 private:
  std::string text_;
  std::vector<Error> wrong_;
};

Result<std::string> options_text(const Workload& w, const ClusterJob& job, const char* signalled) {
  Options options;
  options.add("job-name", job.run);
  options.add("comment", "systole/run=" + job.run);
  options.add_if("partition", w.slurm.partition);
  options.add_if("account", w.slurm.account);
  options.add_if("qos", w.slurm.qos);
  options.add_if("constraint", w.slurm.constraint);
  options.add_if("reservation", w.slurm.reservation);
  if (const auto& array = w.slurm.array) {
    const std::string most = w.slurm.at_once ? fmt::format("%{}", *w.slurm.at_once) : "";
    options.add("array", fmt::format("{}-{}{}", array->least, array->most, most));
  }
  options.add("nodes", job.nodes.elastic() ? fmt::format("{}-{}", job.nodes.least, job.nodes.most)
                                           : std::to_string(job.nodes.most));
  options.add("ntasks-per-node", "1");  // the agent, which starts its node's ranks
  if (job.gpus_per_node > 0)
    options.add("gpus-per-node", w.slurm.gpu_type.empty() ? std::to_string(job.gpus_per_node)
                                                          : fmt::format("{}:{}", w.slurm.gpu_type, job.gpus_per_node));
  if (w.resources.threads) {
    options.add("cpus-per-task", std::to_string(*w.resources.threads * job.ranks_per_node));
  } else {
    options.flag("exclusive");
  }
  if (w.resources.memory)
    options.add("mem", fmt::format("{}M", (w.resources.memory->count() + kMiB.count() - 1) / kMiB.count()));
  if (job.longest) options.add("time", limit_text(*job.longest));
  options.flag("requeue");
  options.add("open-mode", "append");
  if (job.nodes.elastic()) options.flag("no-kill");
  options.add("signal", fmt::format("{}TERM@{:.0f}", signalled, std::ceil(job.notice.count() + kSignalSlack)));
  options.add("output", fmt::format("slurm-{}.log", w.slurm.array ? "%A_%a" : "%j"));
  return std::move(options).text();
}

// The script that Slurm starts on the first node. `$1` avoids escapes that would make a format string unreadable.
constexpr const char* kBody = R"sh(
job=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}
note() { # began NODES | ended CODE: for whoever submitted it
  [ -z "${SYSTOLE_STATE:-}" ] || echo "$1 $job ${SLURM_RESTART_COUNT:-0} $(date +%s) $2" >>"$SYSTOLE_STATE/ledger"
}
is_stopped() {
  [ -n "${SYSTOLE_STATE:-}" ] && [ -e "$SYSTOLE_STATE/stop" ]
}
note began "$SLURM_JOB_NUM_NODES"
if is_stopped; then
  note ended 75
  exit 75
fi
if ! { mkdir -p -- "$SYSTOLE_RUN" && od -An -tx1 -N16 /dev/urandom | tr -d ' \n' >"$SYSTOLE_TOKEN"; }; then
  note ended 3
  exit 3
fi
# TERM comes before the time is up, before a preemption and when it is asked to stop, from Slurm to the ranks: they save
# and end with 75. This script only has to outlive them. (An srun that gets TERM would kill them.)
asked=
trap 'asked=1' TERM
# What the first node to fail ended with says why; srun's own code is the largest, that of those it ended for it.
codes=$SYSTOLE_RUN/codes
rm -f -- "$codes"
# shellcheck disable=SC2016 # for the shells of the nodes
srun --ntasks-per-node=1 KILL sh -c 'trap : TERM; sh "$SYSTOLE_FILES/start.sh"
code=$?; [ "$code" = 0 ] || echo "$code" >>"$0"; exit "$code"' "$codes" &
ranks=$!
wait "$ranks"
code=$?
while [ -n "$asked" ]; do # a signal ends a wait before its process
  asked=
  wait "$ranks"
  again=$?
  [ "$again" = 127 ] || code=$again
done
first=$(head -n 1 -- "$codes" 2>/dev/null)
case $code:$first in
0:* | *:) ;;
*:[123] | *:77) code=$first ;;
137:75 | 143:75) code=75 ;; # they were killed for it, after it had saved
esac
rm -f -- "$SYSTOLE_TOKEN" "$codes"
note ended "$code"
case $code in
75 | 76 | 137 | 143) # stopped, or an agent was killed
  state=$(squeue -h -j "$SLURM_JOB_ID" -o %T) # another one where somebody cancelled it
  is_stopped || [ "$state" != RUNNING ] || [ "${SLURM_RESTART_COUNT:-0}" -ge RETRIES ] || scontrol requeue "$SLURM_JOB_ID"
  ;;
esac
exit "$code"
)sh";

std::string batch_script(const ClusterJob& job, const std::string& head) {
  return head + replaced(replaced(kBody + 1, "KILL",
                                  job.nodes.elastic() ? "--no-kill --kill-on-bad-exit=0" : "--kill-on-bad-exit=1"),
                         "RETRIES", std::to_string(job.retries));
}

}  // namespace

Result<std::string> batch_head(const RenderRequest& ask, const Workload& w, const ClusterJob& job,
                               const char* signalled) {
  std::string text = "#!/bin/bash\n" + made_from(ask, job);
  text += TRY(options_text(w, job, signalled));
  text += "set -u\numask 077\n";
  const bool array = w.slurm.array.has_value();
  // Without quotes around it all, in which those of the place would be part of its name.
  text += fmt::format("export SYSTOLE_FILES=${{SYSTOLE_FILES:-{}{}}}\n", ask.place.starts_with('/') ? "" : "\"$PWD\"/",
                      shell_word(ask.place));
  text += fmt::format("export SYSTOLE_RUN={}{}\n", shell_word(job.folder + "/" + job.run),
                      array ? ".\"$SLURM_ARRAY_TASK_ID\"" : "");
  text += "export SYSTOLE_TOKEN=\"$SYSTOLE_RUN/token\"\nexport SYSTOLE_PORT=$((20000 + SLURM_JOB_ID % 12000))\n";
  return text;
}

Result<Rendered> render_slurm(const RenderRequest& ask, const ClusterJob& job) {
  const Workload& w = ask.workload;
  if (job.replicas) return render_slurm_server(ask, job);
  if (ask.batch != nullptr) return render_slurm_batch(ask, job);
  TRY(refuse_volumes(w, "Slurm mounts no volumes"));
  TRY(refuse_secrets(w, SecretReference::Source::kubernetes, "Slurm has no Secrets of Kubernetes",
                     "file:/PATH, 0600 where all nodes see it; or render for kubernetes"));
  if (w.objective.budget && w.slurm.array)
    return key_error(ErrorKind::unsupported, "objective.budget",
                     "the runs of an array do not see what the others have cost")
        .hinted("a run a seed, each with a budget: --set train.seed=N --run NAME-N");
  const std::optional<NetworkProfile> network = TRY(network_profile(ask, job, NcclScheduler::slurm));
  Rendered rendered;
  rendered.array = w.slurm.array.has_value();
  StartScriptValues values{.files = "$SYSTOLE_FILES", .folder = "$SYSTOLE_RUN"};
  if (!job.alone()) {
    values.leader = "$SLURM_LAUNCH_NODE_IPADDR";
    values.port = "$SYSTOLE_PORT";
    values.node = "$SLURMD_NODENAME";
    values.token_file = "$SYSTOLE_TOKEN";
  }
  if (network) values.before = network_exports(*network);
  if (w.slurm.array) values.seed = w.command.empty() ? "SLURM_ARRAY_TASK_ID" : "";
  const std::string head = TRY(batch_head(ask, w, job, ""));
  rendered.files.push_back({"job.sbatch", batch_script(job, head)});
  rendered.files.push_back({"start.sh", start_script(ask, job, values)});
  for (RenderedFile& file : carried_files(ask)) rendered.files.push_back(std::move(file));
  rendered.commands = {{"start", fmt::format("sbatch {}/job.sbatch", shell_word(ask.place))},
                       {"look", fmt::format("squeue --name={}", job.run)},
                       {"stop", fmt::format("scancel --name={}", job.run)}};
  rendered.drawing =
      picture_of(ask, job, {.cluster = w.slurm.partition.empty() ? "Slurm" : "Slurm, partition " + w.slurm.partition});
  if (network) rendered.warnings = network->warnings;
  if (!job.longest)
    rendered.warnings.push_back("resources.longest is not said: the job gets the time that its partition gives");
  if (!w.image.empty()) rendered.warnings.push_back("image: Slurm starts no containers here; it is not used");
  return rendered;
}

}  // namespace systole
