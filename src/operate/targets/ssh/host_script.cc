// host.sh: runs the agent of a plain machine from beginning to end, for a submitted run; no connection stays open.
#include "operate/targets/ssh/host_script.h"

#include "operate/render/template.h"

namespace systole {
namespace {

constexpr const char* kHost = R"sh(
umask 077
cd -- "$SYSTOLE_RUN/.." || exit 3
again=0 asked='' agent=''
note() { # began MACHINES | ended CODE
  echo "$1 $SYSTOLE_JOB $again $(date +%s) $2" >>"$SYSTOLE_STATE/ledger"
}
stat=$(cat "/proc/$$/stat")
# shellcheck disable=SC2086
set -- ${stat##*) } # behind its name: the 20th is when it began
echo "$$ $(cat /proc/sys/kernel/random/boot_id) ${20}" >"$SYSTOLE_STATE/pid.new" &&
  mv -- "$SYSTOLE_STATE/pid.new" "$SYSTOLE_STATE/pid" || exit 3
FOLLOWS
trap 'asked=1; [ -z "$agent" ] || kill -TERM "$agent" 2>/dev/null' TERM
while :; do
  note began "$SYSTOLE_NODES"
  if [ -e "$SYSTOLE_STATE/stop" ]; then
    code=75
    note ended "$code"
    break
  fi
  FROM
  sh "$SYSTOLE_FILES/start.sh" </dev/null &
  agent=$!
  [ -z "$asked" ] || kill -TERM "$agent" 2>/dev/null
  wait "$agent"
  code=$?
  while [ -n "$asked" ]; do # a signal ends a wait before its process
    asked=
    wait "$agent"
    more=$?
    [ "$more" = 127 ] || code=$more
  done
  agent=
  note ended "$code"
  case $code in
  75 | 76 | 137 | 143) ;; # stopped, or it was killed
  *) break ;;
  esac
  if [ -e "$SYSTOLE_STATE/stop" ] || [ "$again" -ge RETRIES ]; then break; fi
  MET
  again=$((again + 1))
done
rm -f -- "$SYSTOLE_TOKEN"
exit "$code"
)sh";

// Followers are told so: the leader starts last, and its host name may also belong to another machine.
constexpr const char* kFollows = R"sh(
[ "$SYSTOLE_NODE" = "$SYSTOLE_LEADER" ] || export SYSTOLE_FOLLOWS=yes
)sh";

// The leader stops if its machines do not meet again, instead of waiting once for each allowed restart.
constexpr const char* kMet = R"sh(
  if [ "$code" = 76 ] && [ "$SYSTOLE_NODE" = "$SYSTOLE_LEADER" ] &&
    ! tail -c "+$((from + 1))" "$log" | grep -q 'generation .* starts with'; then
    echo "systole: its machines did not meet again" >&2
    break
  fi
)sh";

}  // namespace

std::string host_script(const RenderRequest& ask, const ClusterJob& job) {
  std::string text = "#!/bin/sh\n" + made_from(ask, job) +
                     "# What `systole submit` starts on each machine: it is the agent's parent, and keeps the ledger.\n"
                     "set -u\n";
  text += replaced(kHost + 1, "RETRIES", std::to_string(job.retries));
  const bool gang = !job.alone();
  text = replaced(std::move(text), "FOLLOWS\n", gang ? kFollows + 1 : "");
  text = replaced(std::move(text), "  FROM\n",
                  gang ? "  log=$SYSTOLE_STATE/$SYSTOLE_JOB.log\n  from=$(wc -c <\"$log\")\n" : "");
  return replaced(std::move(text), "  MET\n", gang ? kMet + 1 : "");
}

}  // namespace systole
