#!/bin/sh
# systole: serve-8b on ssh, workload 111111111111
# machine.sh start | look | stop NAME: the server of this machine, in the folder above this file's.
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
  say "once its model is loaded, it listens at http://$name:8000/v1; the key is in $SYSTOLE_TOKEN there, its log in $PWD/log"
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
    asked='' left=45
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
      say "it has not ended in 45 seconds" >&2
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
    [ "$again" -lt 10 ] || exit "$code"
    again=$((again + 1))
    sleep "$again"
    [ -z "$asked" ] || exit "$code"
  done
  ;;
esac
