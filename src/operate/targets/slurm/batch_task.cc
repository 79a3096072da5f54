#include "operate/targets/slurm/batch_task.h"

#include "operate/render/batch_task.h"
#include "operate/render/quote.h"
#include "operate/render/template.h"
#include "operate/targets/picture.h"
#include "operate/targets/slurm/batch.h"

namespace systole {
namespace {

// A task on each node; with shards they take parts of the rows in turn. TERM comes from Slurm to the tasks too: they
// save and end with 75, and this script only has to outlive them.
constexpr const char* kBody = R"sh(
asked=
trap 'asked=1' TERM
srun --ntasks-per-node=1 --kill-on-bad-exit=0 "${SYSTOLE:-systole}" batch "$SYSTOLE_FILES/job.yaml"OPTIONS &
tasks=$!
wait "$tasks"
code=$?
while [ -n "$asked" ]; do # a signal ends a wait before its process
  asked=
  wait "$tasks"
  again=$?
  [ "$again" = 127 ] || code=$again
done
case $code in
75 | 137 | 143) # stopped, or killed: it goes on where it was
  state=$(squeue -h -j "$SLURM_JOB_ID" -o %T) # another one where somebody cancelled it
  [ "$state" != RUNNING ] || [ "${SLURM_RESTART_COUNT:-0}" -ge RETRIES ] || scontrol requeue "$SLURM_JOB_ID"
  ;;
esac
exit "$code"
)sh";

// With the words behind "systole batch FILE".
std::string script(const RenderRequest& ask, const ClusterJob& job, const std::string& head) {
  std::string options;
  const std::vector<std::string> words = batch_words(*ask.batch, job, "");
  for (std::size_t i = 3; i < words.size(); ++i) options += " " + words[i];
  return head + replaced(replaced(kBody + 1, "OPTIONS", options), "RETRIES", std::to_string(job.retries));
}

// The options of the script, for scrontab, which does not read those of a script. @HERE@ is the folder that it is
// installed from.
std::string entry(const RenderRequest& ask, const ClusterJob& job, const std::string& head) {
  std::string text = fmt::format("# {}: systole batch\n", job.run);
  constexpr std::string_view kOption = "#SBATCH ";
  for (std::size_t begin = 0, end = 0; (end = head.find('\n', begin)) != head.npos; begin = end + 1) {
    const std::string_view line = std::string_view(head).substr(begin, end - begin);
    if (line.starts_with(kOption)) text += fmt::format("#SCRON {}\n", line.substr(kOption.size()));
  }
  const std::string place = ask.place.starts_with('/') ? ask.place : "@HERE@/" + ask.place;
  return text + fmt::format("#SCRON --chdir=@HERE@\n{} bash {}/job.sbatch\n# end of {}\n",
                            ask.batch->schedule->cron.plain(), shell_word(place), job.run);
}

}  // namespace

Result<Rendered> render_slurm_batch(const RenderRequest& ask, const ClusterJob& job) {
  const Workload& w = ask.workload;
  const BatchTask& task = *ask.batch;
  TRY(refuse_volumes(w, "Slurm mounts no volumes"));
  TRY(refuse_environment(w, "Slurm"));
  if (w.slurm.array)
    return key_error(ErrorKind::unsupported, "slurm.array", "a batch is one job")
        .hinted("shards: auto, and resources.nodes for more processes");
  if (!task.is_shared && !job.alone())
    return key_error(ErrorKind::invalid, "shards", "{} nodes, and the job is of one process", job.nodes.most)
        .hinted("shards: auto; or resources.nodes: 1");
  const std::string head = TRY(batch_head(ask, w, job, ""));
  const std::string place = shell_word(ask.place);
  Rendered rendered;
  rendered.files = {{"job.sbatch", script(ask, job, head)}, {"job.yaml", task.file}};
  rendered.commands = {{"start", fmt::format("sbatch {}/job.sbatch", place)}};
  std::string stop = fmt::format("scancel --name={}", job.run);
  if (task.schedule) {
    rendered.files.push_back({"scrontab", entry(ask, job, head)});
    const std::string without =
        fmt::format("scrontab -l 2>/dev/null | sed '/^# {0}: systole batch$/,/^# end of {0}$/d'", job.run);
    rendered.commands = {
        // A table does not say how a folder with spaces is written.
        {"start",
         fmt::format("case $PWD in *[!A-Za-z0-9/._+-]*) echo \"install it from a folder with a plain name\" >&2; "
                     "false ;; esac && [ -r {1}/scrontab ] && {{ {0}; sed \"s|@HERE@|$PWD|g\" {1}/scrontab; }} | "
                     "scrontab -",
                     without, place)},
        {"now", fmt::format("sbatch {}/job.sbatch", place)}};
    stop = fmt::format("{} | scrontab -; {}", without, stop);
    rendered.warnings.push_back(fmt::format(
        "schedule: scrontab has the times of the cluster's clock, and the job runs what is due in {}: if the "
        "cluster's clock is another, a run is hours late, and beyond start_within nothing runs; write the "
        "cluster's time_zone, or start_within: 24h",
        task.schedule->zone.name()));
  }
  rendered.commands.emplace_back("look", fmt::format("squeue --name={}", job.run));
  rendered.commands.emplace_back("stop", std::move(stop));
  rendered.drawing =
      picture_of(ask, job, {.cluster = w.slurm.partition.empty() ? "Slurm" : "Slurm, partition " + w.slurm.partition});
  if (!w.image.empty()) rendered.warnings.push_back("image: Slurm starts no containers here; it is not used");
  return rendered;
}

}  // namespace systole
