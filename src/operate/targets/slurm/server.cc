#include "operate/targets/slurm/server.h"

#include "operate/render/quote.h"
#include "operate/render/server_words.h"
#include "operate/render/start_script.h"
#include "operate/render/template.h"
#include "operate/targets/picture.h"
#include "operate/targets/slurm/batch.h"

namespace systole {
namespace {

// The server is a child of this script, so that TERM before the end of its time comes here alone (--signal=B:). The key
// is drawn here, on the machine, and named to the server by its file.
constexpr const char* kBody = R"sh(
mkdir -p -- "$SYSTOLE_RUN" || exit 3
# The keys that requests show, one a line: one is drawn, unless there are some.
if ! [ -s "$SYSTOLE_TOKEN" ]; then
  od -An -tx1 -N16 /dev/urandom | tr -d ' \n' >"$SYSTOLE_TOKEN" || exit 3
fi
url=http://${SLURMD_NODENAME:-$(uname -n)}:$SYSTOLE_PORT/v1
echo "$url" >"$SYSTOLE_RUN/address" || exit 3
echo "systole: once its model is loaded, it listens at $url; requests show the key in $SYSTOLE_TOKEN"

asked='' woken='' server=''
state() {
  squeue -h -j "$SLURM_JOB_ID" -o %T
}
# shellcheck disable=SC2317 # the traps call it
drain() { # again | stop: what comes after
  asked=$1 woken=1
  # Where Slurm ends the whole job, the server has had TERM from it: a second one would cut its answers off.
  case $(state) in
  RUNNING | '') [ -z "$server" ] || kill -TERM "$server" 2>/dev/null ;;
  esac
}
trap 'drain again' TERM # its time is nearly up, or its machine is taken
trap 'drain stop' USR1
sh "$SYSTOLE_FILES/start.sh" &
server=$!
[ -z "$asked" ] || kill -TERM "$server" 2>/dev/null
wait "$server"
code=$?
while [ -n "$woken" ]; do # a signal ends a wait before its process
  woken=
  wait "$server"
  more=$?
  [ "$more" = 127 ] || code=$more
done
rm -f -- "$SYSTOLE_RUN/address"
echo "systole: the server ended with $code"
if [ "$asked" != stop ] && [ "$(state)" = RUNNING ]; then # it is cancelled, else
  case $asked:$code in
  again:0 | again:143) scontrol requeue "$SLURM_JOB_ID" ;;
  :13[4-9] | :143) # it was killed
    [ "${SLURM_RESTART_COUNT:-0}" -ge RETRIES ] || scontrol requeue "$SLURM_JOB_ID"
    ;;
  esac
fi
exit "$code"
)sh";

// What the job holds: one machine, with what each of its servers needs.
ClusterJob on_one_machine(const ClusterJob& job, std::int64_t servers) {
  ClusterJob held = job;
  held.nodes = {1, 1};
  held.ranks_per_node = held.pods_per_node = servers;
  held.gpus_per_node = job.devices_per_pod();
  return held;
}

Result<std::string> script(const RenderRequest& ask, const ClusterJob& held, std::int64_t servers) {
  Workload w = ask.workload;
  if (w.resources.memory) w.resources.memory = *w.resources.memory * servers;
  const std::string head = TRY(batch_head(ask, w, held, "B:"));
  return head + replaced(kBody + 1, "RETRIES", std::to_string(held.retries));
}

}  // namespace

Result<Rendered> render_slurm_server(const RenderRequest& ask, const ClusterJob& job) {
  const Workload& w = ask.workload;
  TRY(refuse_volumes(w, "Slurm mounts no volumes"));
  TRY(check_served(w, false, "on the machines"));
  Rendered rendered;
  const std::int64_t servers = TRY(servers_of_machine(ask.workload, job, rendered.warnings));
  const ClusterJob held = on_one_machine(job, servers);
  const std::string text = TRY(script(ask, held, servers));
  StartScriptValues values{.files = "$SYSTOLE_FILES"};
  values.serve = server_line(w, job, {.token_file = "$SYSTOLE_TOKEN", .port = "$SYSTOLE_PORT", .replicas = servers});
  rendered.files = {{"serve.sbatch", text}, {"start.sh", start_script(ask, job, values)}};
  for (RenderedFile& file : carried_files(ask)) rendered.files.push_back(std::move(file));
  const std::string run = shell_word(job.folder + "/" + job.run);
  rendered.commands = {
      {"start", fmt::format("sbatch {}/serve.sbatch", shell_word(ask.place))},
      {"look", fmt::format("squeue --name={}", job.run)},
      {"reach", fmt::format("{} \"$(cat {}/address)/models\"", asking_with(run + "/token"), run)},
      {"stop",
       fmt::format("scancel --batch --signal=USR1 --state=RUNNING --name={0}; scancel --state=PENDING --name={0}",
                   job.run)}};
  rendered.drawing =
      picture_of(ask, held, {.cluster = w.slurm.partition.empty() ? "Slurm" : "Slurm, partition " + w.slurm.partition});
  if (!job.longest)
    rendered.warnings.push_back("resources.longest is not said: the job gets the time that its partition gives");
  if (!w.image.empty()) rendered.warnings.push_back("image: Slurm starts no containers here; it is not used");
  return rendered;
}

}  // namespace systole
