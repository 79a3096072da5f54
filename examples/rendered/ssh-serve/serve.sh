#!/bin/sh
# systole: serve-8b on ssh, workload 111111111111
# serve.sh start | look | stop: the servers of the machines in `hosts`, one on each.
set -u
files=$(cd "$(dirname "$0")" && pwd) || exit 3
folder=runs/serve-8b
what=${1:-start}
case $what in
start | look | stop) ;;
*)
  echo "usage: sh serve.sh start | look | stop" >&2
  exit 2
  ;;
esac
on() { # PORT LOGIN COMMAND: a line of sh, there
  [ "$1" = - ] || set -- "$@" -p "$1"
  login=$2 command=$3
  shift 3
  ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 "$@" -- "$login" "$command"
}
failed=0
while read -r p login name <&4; do
  if [ "$what" = start ] && ! tar -C "$files" -cf - -- start.sh machine.sh workload.yaml |
    on "$p" "$login" "umask 077; mkdir -p -- $folder/files && tar -C $folder/files -xof -"; then
    echo "systole: cannot bring the files to $name" >&2
    failed=1
    continue
  fi
  on "$p" "$login" "sh $folder/files/machine.sh $what $name" </dev/null || failed=1
done 4<"$files/hosts"
exit "$failed"
