#include "operate/targets/ssh/ssh_host.h"

#include "operate/render/quote.h"

namespace systole {
namespace {

constexpr const char* kCommon = R"sh(
umask 077
root=$HOME/.systole
mine=$root/runs/$run/$name
began_at() { # PID: in ticks since the machine began, or nothing
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  set -- ${stat##*) }
  [ "$1" != Z ] && echo "${20}"
}
state_of() { # FOLDER: live, gone or rebooted; sets pid
  read -r pid boot began 2>/dev/null <"$1/pid" || { echo gone; return; }
  if [ "$boot" != "$(cat /proc/sys/kernel/random/boot_id)" ]; then
    echo rebooted
  elif [ "$(began_at "$pid")" = "$began" ]; then
    echo live
  else
    echo gone
  fi
}
missing_end() { # FOLDER SECONDS: the ledger's line of one that could not write it itself
  [ -n "$2" ] || return 0
  last=$(tail -n 1 "$1/ledger" 2>/dev/null)
  set -- "$1" "$2" $last
  [ "${3:-}" != began ] || echo "ended $4 $5 $2 137"
}
last_written() { # FOLDER: when the run that is gone last wrote, in seconds
  of_job=
  read -r _ of_job _ 2>/dev/null <"$1/sent" || :
  stat -c %Y -- "$1/$of_job.log" "$1/ledger" 2>/dev/null | sort -n | tail -n 1
}
note_end() { # FOLDER SECONDS
  line=$(missing_end "$1" "$2")
  [ -z "$line" ] || echo "$line" >>"$1/ledger"
}
kill_it() { # FOLDER: with all that it started, and waits
  [ "$(state_of "$1")" = live ] || return 0
  read -r pid boot began <"$1/pid"
  pkill -KILL -s "$pid"
  i=0
  while [ "$(state_of "$1")" = live ] && [ "$i" -lt 100 ]; do sleep 0.1; i=$((i + 1)); done
  note_end "$1" "$(date +%s)"
  rm -f -- "$1/token"
}
)sh";

// Answers each line that it reads with one line; begins with the machine's state.
constexpr const char* kBegin = R"sh(
say() { printf '%s\n' "$(printf %s "$*" | tr '\n' ' ')"; }
for tool in flock setsid sha256sum tar head tail pkill df; do
  command -v "$tool" >/dev/null || { say "no $tool: it is not installed there"; exit; }
done
while :; do
  was=$([ -e "$mine" ] && echo there)
  why=$(mkdir -p -- "$mine" "$root/programs" 2>&1) || { say "no $why"; exit; }
  exec 9>"$mine/lock"
  # A submission that is killed frees its lock in a moment, and may have removed the folder with it by then.
  flock -w 3 9 || { say busy; exit; }
  [ "$mine/lock" -ef /proc/self/fd/9 ] && break
done
if [ "$(state_of "$mine")" = live ]; then
  read -r sent job_there workload_there <"$mine/sent"
  say "runs $sent $job_there"
else
  say free
fi
case $folder in /*) ;; *) folder=$HOME/$folder ;; esac
at=$root/programs/$program
is_program() { [ -f "$1" ] && [ "$(sha256sum <"$1")" = "$program  -" ]; }
placed= begun= token=
undo() { # what this connection made
  if [ -n "$begun" ]; then
    kill_it "$mine"
    rm -f -- "$mine/sent" "$mine/pid"
  fi
  [ -z "$token" ] || rm -f -- "$mine/token"
  [ -z "$placed" ] || rm -f -- "$at"
  [ -n "$was" ] || { rm -rf -- "$mine"; rmdir -- "$root/runs/$run" 2>/dev/null; }
  begun=
}
while read -r word size; do
  case $word in
  end)
    kill_it "$mine"
    say ok
    ;;
  room) # SIZE: bytes of the program
    why=$({ mkdir -p -- "$folder" && echo >"$folder/.systole.$name"; } 2>&1) || { say "no it cannot write to $folder: $why"; continue; }
    rm -f -- "$folder/.systole.$name"
    need=16384
    has=yes
    is_program "$at" || { has=no; need=$((need + size / 1024)); }
    free=$(df -Pk -- "$mine" | tail -n 1 | { read -r _ _ _ free _; echo "$free"; })
    if [ "$free" -lt "$need" ]; then
      say "full $((need / 1024)) $((free / 1024))"
    elif [ "$has" = yes ]; then
      say has
    else
      say wants
    fi
    ;;
  program) # SIZE
    half=$at.$$
    why=$({ head -c "$size" >"$half"; } 2>&1) || { say "no $why"; rm -f -- "$half"; break; }
    if is_program "$half" && chmod 0755 "$half" && mv -- "$half" "$at"; then
      placed=yes
      say ok
    else
      rm -f -- "$half"
      say "no what arrived is not the program that was sent"
    fi
    ;;
  files) # SIZE, after a line with the token
    read -r token
    rm -rf -- "$mine/files" && mkdir -- "$mine/files"
    why=$(head -c "$size" | tar -C "$mine/files" -xof - 2>&1) || { say "no $why"; break; }
    why=$({ printf %s "$token" >"$mine/token"; } 2>&1) || { say "no $why"; break; }
    say ok
    ;;
  mark)
    why=$({ echo >"$folder/.shared.$submission"; } 2>&1) && say ok || say "no $why"
    ;;
  marked)
    if [ -e "$folder/.shared.$submission" ]; then say ok; else say unseen; fi
    ;;
  unmark)
    rm -f -- "$folder/.shared.$submission"
    say ok
    ;;
  start)
    [ "$(state_of "$mine")" = live ] || note_end "$mine" "$(last_written "$mine")"
    rm -f -- "$mine/stop"
    begun=yes
    printf '%s %s %s\n' "$submission" "$job" "$workload" >"$mine/sent"
    SYSTOLE=$at SYSTOLE_FILES=$mine/files SYSTOLE_RUN=$folder SYSTOLE_STATE=$mine SYSTOLE_TOKEN=$mine/token \
      SYSTOLE_LEADER=$leader SYSTOLE_PORT=$port SYSTOLE_NODE=$name SYSTOLE_JOB=$job SYSTOLE_NODES=$nodes \
      setsid sh "$mine/files/host.sh" </dev/null >>"$mine/$job.log" 2>&1 9>&- &
    i=0
    while [ "$(state_of "$mine")" != live ] && [ "$i" -lt 50 ]; do
      [ "$(tail -n 1 "$mine/ledger" 2>/dev/null | cut -d' ' -f1,2)" != "ended $job" ] || break
      sleep 0.05
      i=$((i + 1))
    done
    if [ "$i" -lt 50 ]; then say ok; else say "no it does not begin: $(tail -n 1 "$mine/$job.log" 2>/dev/null)"; fi
    ;;
  undo)
    undo
    say ok
    ;;
  esac
done
[ -n "$begun" ] || undo
)sh";

constexpr const char* kQuery = R"sh(
for mine in "$root"/runs/${run:-*}/"$name"; do
  [ -e "$mine/sent" ] || continue
  state=$(state_of "$mine")
  read -r sent job workload <"$mine/sent"
  [ ! -e "$mine/stop" ] || state=$state,stop
  of=${mine%/*}
  printf 'run %s %s %s %s %s\n' "${of##*/}" "$sent" "$job" "$workload" "$state"
  sed 's/^/ /' "$mine/ledger" 2>/dev/null
  case $state in
  live*) ;;
  *) missing_end "$mine" "$(last_written "$mine")" | sed 's/^/ /' ;;
  esac
done
echo end
)sh";

// As much as fits the time of one connection.
constexpr const char* kRead = R"sh(
[ ! -e "$mine/$job.log" ] || tail -c "+$((from + 1))" -- "$mine/$job.log" | head -c 4194304
)sh";

constexpr const char* kStop = R"sh(
[ -e "$mine/sent" ] || exit 0
: >"$mine/stop" || exit 1
[ "$(state_of "$mine")" != live ] || { read -r pid boot began <"$mine/pid" && kill -TERM "$pid"; }
)sh";

constexpr const char* kKill = R"sh(
[ -e "$mine/sent" ] || exit 0
: >"$mine/stop"
kill_it "$mine"
)sh";

constexpr const char* kPurge = R"sh(
[ "$(state_of "$mine")" != live ] || { echo "it runs" >&2; exit 1; }
rm -rf -- "$mine"
rmdir -- "$root/runs/$run" 2>/dev/null
# The program goes with the last run that has it.
grep -qsrF "$program" "$root"/runs/*/*/files/start.sh || rm -f -- "$root/programs/$program"
rmdir -- "$root/programs" "$root/runs" "$root" 2>/dev/null
exit 0
)sh";

const char* body_of(HostCommand act) {
  switch (act) {
    case HostCommand::begin: return kBegin;
    case HostCommand::query: return kQuery;
    case HostCommand::read: return kRead;
    case HostCommand::stop: return kStop;
    case HostCommand::kill: return kKill;
    case HostCommand::purge: return kPurge;
  }
  return kQuery;
}

}  // namespace

std::string script_of(HostCommand act, const std::vector<std::pair<std::string, std::string>>& values) {
  std::string text;
  for (const auto& [name, value] : values) text += fmt::format("{}={}\n", name, shell_word(value));
  return text + (kCommon + 1) + (body_of(act) + 1);
}

}  // namespace systole
