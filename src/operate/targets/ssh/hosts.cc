// run.sh: copies the files to plain machines by ssh, starts an agent on each, and runs as long as they do.
#include "operate/targets/ssh/hosts.h"

#include <set>

#include "operate/render/quote.h"
#include "operate/render/start_script.h"
#include "operate/render/template.h"
#include "operate/targets/picture.h"
#include "operate/targets/ssh/batch_task.h"
#include "operate/targets/ssh/host_script.h"
#include "operate/targets/ssh/server.h"

namespace systole {

Result<std::vector<NamedHost>> hosts_of(const Workload& w) {
  std::vector<NamedHost> hosts;
  std::set<std::string> names;
  for (const std::string& text : w.ssh.hosts) {
    const std::optional<NamedHost> host = read_named_host(text);
    CHECK(host, "the schema let through what is no host");
    hosts.push_back(*host);
    if (!names.insert(hosts.back().name).second)
      return key_error(ErrorKind::invalid, "ssh.hosts", "'{}' is there twice", hosts.back().name)
          .hinted("resources.ranks_per_node for several ranks on one machine");
  }
  if (!hosts.empty()) return hosts;
  return key_error(ErrorKind::invalid, "ssh.hosts", "on which machines?")
      .hinted("ssh: { hosts: [alice@node1, alice@node2] }");
}

namespace {

// Runs on each machine, beside start.sh. Its standard input is the connection that started it.
constexpr const char* kAgent = R"sh(#!/bin/sh
# Starts the agent of this machine, and asks it to save and stop once whoever started it is gone.
cd "$(dirname "$0")/../.." || exit 3
exec 3<&0
sh "$SYSTOLE_FILES/start.sh" </dev/null 3<&- &
agent=$!
{
  cat <&3 >/dev/null
  kill -TERM "$agent" 2>/dev/null
} &
watch=$!
exec 3<&-
wait "$agent"
code=$?
kill "$watch" 2>/dev/null
rm -f -- "$SYSTOLE_RUN/token.$SYSTOLE_NODE"
exit "$code"
)sh";

// FOLDER: the run's folder on the machines, as a word of sh.
constexpr const char* kRun = R"sh(
files=$(cd "$(dirname "$0")" && pwd) || exit 3
folder=FOLDER
refuse() {
  echo "systole: $1" >&2
  exit 3
}
ON_MACHINE
token=$(od -An -tx1 -N16 /dev/urandom | tr -d ' \n')
port=$((20000 + 0x$(printf %.4s "$token") % 12000))
here=$(mktemp -d) || exit 3
trap 'rm -rf "$here"' EXIT
mkfifo "$here/open"

# The files, and what the machines share, go in by standard input: nothing secret is in a list of processes.
leader=
while read -r p login name <&4; do
  tar -C "$files" -cf - -- start.sh agent.sh CARRIED |
    on "$p" "$login" "umask 077; mkdir -p -- $folder/files && tar -C $folder/files -xof -" || refuse "cannot bring the files to $name"
  printf %s "$token" | on "$p" "$login" "umask 077; cat >$folder/token.$name" || refuse "cannot write on $name"
  [ -n "$leader" ] || leader=$name
  SHARED
done 4<"$files/hosts"

# As long as this script holds the pipe open, the agents run; when it ends, however, they save and stop.
exec 9<>"$here/open"
asked=
trap 'asked=1; exec 9>&-' TERM INT HUP
first=
while read -r p login name <&4; do
  (
    exec <"$here/open" 4<&- 9>&- # its own end alone: nobody else holds the pipe open
    on "$p" "$login" "cd -- $folder && export SYSTOLE_FILES=\"\$PWD/files\" SYSTOLE_RUN=\"\$PWD\" SYSTOLE_LEADER=$leader SYSTOLE_PORT=$port SYSTOLE_NODE=$name && exec sh files/agent.sh"
  ) &
  [ -n "$first" ] || first=$!
done 4<"$files/hosts"
wait "$first"
code=$?
while [ -n "$asked" ]; do # a signal ends a wait before its process
  asked=
  wait "$first"
  again=$?
  [ "$again" = 127 ] || code=$again
done
exec 9>&-
wait
exit "$code"
)sh";

// A model's ranks write to one shared folder; a user's program need not.
bool shares_folder(const RenderRequest& ask, const ClusterJob& job) {
  return ask.workload.command.empty() && !job.alone();
}

constexpr const char* kShared =
    "on \"$p\" \"$login\" \"test -e $folder/token.$leader\" ||\n"
    "    refuse \"$name does not see the folder of $leader, $folder: a model's ranks share one\"";

std::string run_script(const RenderRequest& ask, const ClusterJob& job) {
  const bool shares = shares_folder(ask, job);
  std::string text = replaced(kRun + 1, "ON_MACHINE\n", kOnMachine + 1);
  text = replaced(std::move(text), "CARRIED", ask.plan == nullptr ? "workload.yaml" : "workload.yaml plan.json");
  text = replaced(std::move(text), shares ? "SHARED" : "\n  SHARED", shares ? kShared : "");
  // The user's text is filled in last: it may contain the other words.
  text = replaced(std::move(text), "FOLDER", shell_word(shell_word(job.folder + "/" + job.run)));
  return "#!/bin/sh\n" + made_from(ask, job) +
         "# Brings the files to each machine, starts its agent, and goes on until all have ended.\nset -u\n" + text;
}

}  // namespace

std::string hosts_list(const std::vector<NamedHost>& hosts) {
  std::string list;
  for (const NamedHost& host : hosts) list += fmt::format("{} {} {}\n", host.port, host.login, host.name);
  return list;
}

Result<Rendered> render_ssh(const RenderRequest& ask, const ClusterJob& job) {
  if (job.replicas) return render_ssh_servers(ask, job);
  if (ask.batch != nullptr) return render_ssh_batch(ask, job);
  const Workload& w = ask.workload;
  const std::vector<NamedHost> hosts = TRY(hosts_of(w));
  if (job.nodes.most != static_cast<std::int64_t>(hosts.size()))
    return key_error(ErrorKind::invalid, "resources.nodes", "{}, and ssh.hosts are {}", job.nodes.most, hosts.size())
        .hinted("leave resources.nodes out, or name as many hosts");
  TRY(refuse_volumes(w, "plain machines have none"));
  TRY(refuse_secrets(w, SecretReference::Source::kubernetes, "plain machines have no Secrets of Kubernetes",
                     "file:/PATH, 0600 on each machine; or render for kubernetes"));
  TRY(refuse_secrets(w, SecretReference::Source::environment, "ssh takes no environment along",
                     "file:/PATH, 0600 on each machine; slurm takes it along"));
  StartScriptValues values{.files = "$SYSTOLE_FILES", .folder = "$SYSTOLE_RUN"};
  if (!job.alone()) {
    values.leader = "$SYSTOLE_LEADER";
    values.port = "$SYSTOLE_PORT";
    values.node = "$SYSTOLE_NODE";
    values.more = "${SYSTOLE_FOLLOWS:+--follow}";
    values.token_file = "${SYSTOLE_TOKEN:-$SYSTOLE_RUN/token.$SYSTOLE_NODE}";
  }
  Rendered rendered;
  const std::string list = hosts_list(hosts);
  rendered.files = {{"run.sh", run_script(ask, job), true},
                    {"hosts", list},
                    {"agent.sh", kAgent},
                    {"host.sh", host_script(ask, job)},
                    {"start.sh", start_script(ask, job, values)}};
  rendered.where = {{"hosts", list}, {"shared", shares_folder(ask, job) ? "yes" : "no"}};
  for (RenderedFile& file : carried_files(ask)) rendered.files.push_back(std::move(file));
  rendered.commands = {{"start", fmt::format("sh {}/run.sh", shell_word(ask.place))},
                       {"stop", "Ctrl-C: all save and stop; the same line goes on"}};
  rendered.drawing = picture_of(ask, job, {.cluster = "machines by ssh", .nodes = w.ssh.hosts});
  if (job.longest) rendered.warnings.push_back("resources.longest: nobody ends it on plain machines; it is not used");
  if (!w.image.empty()) rendered.warnings.push_back("image: plain machines start no containers; it is not used");
  return rendered;
}

}  // namespace systole
