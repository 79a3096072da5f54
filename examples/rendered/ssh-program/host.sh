#!/bin/sh
# systole: ddp on ssh, workload 111111111111
# What `systole submit` starts on each machine: it is the agent's parent, and keeps the ledger.
set -u
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
trap 'asked=1; [ -z "$agent" ] || kill -TERM "$agent" 2>/dev/null' TERM
while :; do
  note began "$SYSTOLE_NODES"
  if [ -e "$SYSTOLE_STATE/stop" ]; then
    code=75
    note ended "$code"
    break
  fi
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
  if [ -e "$SYSTOLE_STATE/stop" ] || [ "$again" -ge 10 ]; then break; fi
  again=$((again + 1))
done
rm -f -- "$SYSTOLE_TOKEN"
exit "$code"
