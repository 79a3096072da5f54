#!/bin/sh
# systole: ddp on ssh, workload 111111111111
# Brings the files to each machine, starts its agent, and goes on until all have ended.
set -u
files=$(cd "$(dirname "$0")" && pwd) || exit 3
folder=runs/ddp
refuse() {
  echo "systole: $1" >&2
  exit 3
}
on() { # PORT LOGIN COMMAND: a line of sh, there
  [ "$1" = - ] || set -- "$@" -p "$1"
  login=$2 command=$3
  shift 3
  ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 "$@" -- "$login" "$command"
}
token=$(od -An -tx1 -N16 /dev/urandom | tr -d ' \n')
port=$((20000 + 0x$(printf %.4s "$token") % 12000))
here=$(mktemp -d) || exit 3
trap 'rm -rf "$here"' EXIT
mkfifo "$here/open"

# The files, and what the machines share, go in by standard input: nothing secret is in a list of processes.
leader=
while read -r p login name <&4; do
  tar -C "$files" -cf - -- start.sh agent.sh workload.yaml |
    on "$p" "$login" "umask 077; mkdir -p -- $folder/files && tar -C $folder/files -xof -" || refuse "cannot bring the files to $name"
  printf %s "$token" | on "$p" "$login" "umask 077; cat >$folder/token.$name" || refuse "cannot write on $name"
  [ -n "$leader" ] || leader=$name
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
