#!/bin/sh
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
