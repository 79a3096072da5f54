#include "operate/targets/ssh/server.h"

#include "operate/render/quote.h"
#include "operate/render/server_words.h"
#include "operate/render/start_script.h"
#include "operate/render/template.h"
#include "operate/targets/picture.h"
#include "operate/targets/ssh/hosts.h"

namespace systole {
namespace {

// FOLDER: of the servers on the machines, as a word of sh.
constexpr const char* kServe = R"sh(
files=$(cd "$(dirname "$0")" && pwd) || exit 3
folder=FOLDER
what=${1:-start}
case $what in
start | look | stop) ;;
*)
  echo "usage: sh serve.sh start | look | stop" >&2
  exit 2
  ;;
esac
ON_MACHINE
failed=0
while read -r p login name <&4; do
  if [ "$what" = start ] && ! tar -C "$files" -cf - -- start.sh machine.sh CARRIED |
    on "$p" "$login" "umask 077; mkdir -p -- $folder/files && tar -C $folder/files -xof -"; then
    echo "systole: cannot bring the files to $name" >&2
    failed=1
    continue
  fi
  on "$p" "$login" "sh $folder/files/machine.sh $what $name" </dev/null || failed=1
done 4<"$files/hosts"
exit "$failed"
)sh";

// Runs on each machine, beside start.sh. The lock is held as long as the server, or what keeps it, goes on.
constexpr const char* kMachine = R"sh(
set -u
umask 077
what=$1 name=$2
cd -- "$(dirname "$0")/.." || exit 3
export SYSTOLE_FILES="$PWD/files" SYSTOLE_TOKEN="$PWD/token"
say() {
  echo "$name: $1"
}
is_there() {
  ! flock -n lock true
}
case $what in
start)
  if is_there; then
    say "it serves already"
    exit 0
  fi
  # The keys that requests show, one a line: one is drawn, unless there are some.
  if ! [ -s token ]; then
    od -An -tx1 -N16 /dev/urandom | tr -d ' \n' >token || exit 3
  fi
  earlier=$(cat pid 2>/dev/null)
  setsid flock -n lock sh files/machine.sh keep "$name" </dev/null >>log 2>&1 &
  begun=$! tries=0
  while [ "$(cat pid 2>/dev/null)" = "$earlier" ] && kill -0 "$begun" 2>/dev/null && [ "$tries" -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  sleep 1
  if ! is_there; then
    say "the server ended: $(tail -n 1 log)" >&2
    exit 1
  fi
  say "once its model is loaded, it listens at http://$name:PORT/v1; the key is in $SYSTOLE_TOKEN there, its log in $PWD/log"
  ;;
look)
  if ! is_there; then
    say "no server; the end of its log: $(tail -n 1 log)" >&2
    exit 1
  fi
  say "a server goes on; the end of its log: $(tail -n 1 log)"
  ;;
stop)
  if is_there; then
    read -r keeper session <pid
    asked='' left=LONGEST
    while [ "$left" -gt 0 ]; do
      # The server itself is asked once what keeps it was killed, which shows a moment later, and may leave a zombie.
      case $(cut -d' ' -f3,6 "/proc/$keeper/stat" 2>/dev/null) in
      [!ZX]" $session")
        [ -n "$asked" ] || kill -TERM "$keeper"
        asked=${asked:-keeper}
        ;;
      *)
        [ "$asked" = server ] || pkill -TERM -s "$session"
        asked=server
        ;;
      esac
      ! flock -w 1 lock true || break
      left=$((left - 1))
    done
    if [ "$left" = 0 ]; then
      say "it has not ended in LONGEST seconds" >&2
      exit 1
    fi
  fi
  say "no server"
  ;;
keep)
  read -r _ _ _ _ _ session _ <"/proc/$$/stat"
  echo "$$ $session" >pid
  asked='' server='' again=0
  trap 'asked=1; [ -z "$server" ] || kill -TERM "$server" 2>/dev/null' TERM
  while :; do
    sh "$SYSTOLE_FILES/start.sh" &
    server=$!
    [ -z "$asked" ] || kill -TERM "$server" 2>/dev/null
    wait "$server"
    code=$?
    while kill -0 "$server" 2>/dev/null; do # a signal ends a wait before its process
      wait "$server"
      code=$?
    done
    server=
    echo "systole: the server ended with $code"
    case $asked:$code in
    :13[4-9] | :143) ;; # it was killed
    *) exit "$code" ;;
    esac
    [ "$again" -lt RETRIES ] || exit "$code"
    again=$((again + 1))
    sleep "$again"
    [ -z "$asked" ] || exit "$code"
  done
  ;;
esac
)sh";

std::string serve_script(const RenderRequest& ask, const ClusterJob& job) {
  std::string text = replaced(kServe + 1, "ON_MACHINE\n", kOnMachine + 1);
  text = replaced(std::move(text), "CARRIED", ask.plan == nullptr ? "workload.yaml" : "workload.yaml plan.json");
  text = replaced(std::move(text), "FOLDER", shell_word(shell_word(job.folder + "/" + job.run)));
  return "#!/bin/sh\n" + made_from(ask, job) +
         "# serve.sh start | look | stop: the servers of the machines in `hosts`, one on each.\nset -u\n" + text;
}

std::string machine_script(const RenderRequest& ask, const ClusterJob& job) {
  const std::string longest = std::to_string(server_grace(job) + 15);
  std::string text = replaced(kMachine + 1, "PORT", std::to_string(kServerPort));
  for (int i = 0; i < 2; ++i) text = replaced(std::move(text), "LONGEST", longest);
  return "#!/bin/sh\n" + made_from(ask, job) +
         "# machine.sh start | look | stop NAME: the server of this machine, in the folder above this file's.\n" +
         replaced(std::move(text), "RETRIES", std::to_string(job.retries));
}

// A server on each machine: as many as the workload says.
Status check_count(const ClusterJob& job, std::size_t hosts) {
  const CountRange& replicas = *job.replicas;
  const auto count = static_cast<std::int64_t>(hosts);
  if (count >= replicas.least && count <= replicas.most) return {};
  const std::string said =
      replicas.elastic() ? fmt::format("{}:{}", replicas.least, replicas.most) : std::to_string(replicas.least);
  return key_error(ErrorKind::invalid, "serve.replicas", "{}, and ssh.hosts are {}, each with one", said, count)
      .hinted(fmt::format("serve.replicas: {}, or as many hosts", count));
}

}  // namespace

Result<Rendered> render_ssh_servers(const RenderRequest& ask, const ClusterJob& job) {
  const Workload& w = ask.workload;
  const std::vector<NamedHost> hosts = TRY(hosts_of(w));
  TRY(check_count(job, hosts.size()));
  TRY(refuse_volumes(w, "plain machines have none"));
  TRY(check_served(w, true, "on the machines"));
  StartScriptValues values{.files = "$SYSTOLE_FILES"};
  values.serve = server_line(w, job, {.token_file = "$SYSTOLE_TOKEN", .threads = w.resources.threads.value_or(0)});
  const std::string list = hosts_list(hosts), place = shell_word(ask.place);
  Rendered rendered;
  rendered.files = {{"serve.sh", serve_script(ask, job), true},
                    {"hosts", list},
                    {"machine.sh", machine_script(ask, job)},
                    {"start.sh", start_script(ask, job, values)}};
  for (RenderedFile& file : carried_files(ask)) rendered.files.push_back(std::move(file));
  for (const char* what : {"start", "look", "stop"})
    rendered.commands.emplace_back(what, fmt::format("sh {}/serve.sh {}", place, what));
  ClusterJob drawn = job;  // a server on each machine, and none to come
  drawn.nodes = {static_cast<std::int64_t>(hosts.size()), static_cast<std::int64_t>(hosts.size())};
  drawn.gpus_per_node = job.devices_per_pod();
  drawn.pods_per_node = 1;
  rendered.drawing = picture_of(ask, drawn, {.cluster = "machines by ssh", .nodes = w.ssh.hosts});
  if (job.longest) rendered.warnings.push_back("resources.longest: nobody ends it on plain machines; it is not used");
  if (w.resources.memory) rendered.warnings.push_back("resources.memory: nothing limits it on plain machines");
  if (!w.image.empty()) rendered.warnings.push_back("image: plain machines start no containers; it is not used");
  return rendered;
}

}  // namespace systole
