#!/bin/sh
# systole: linear on slurm, workload 111111111111
# Runs on each node: holds the files to their digests, then is the agent of this node.
set -eu
files=$SYSTOLE_FILES
folder=$SYSTOLE_RUN
refuse() {
  echo "systole: $1" >&2
  exit 3
}
verify() { # FILE SHA256
  [ -r "$1" ] || refuse "cannot read $1 on $(uname -n)"
  [ "$(sha256sum <"$1")" = "$2  -" ] || refuse "$1 on $(uname -n) is not the file that was rendered"
}
program=$(command -v -- "${SYSTOLE:-systole}") || refuse "no program '${SYSTOLE:-systole}' on $(uname -n)"
verify "$program" 2222222222222222222222222222222222222222222222222222222222222222
verify "$files/workload.yaml" 1111111111111111111111111111111111111111111111111111111111111111
exec "$program" run "$files/workload.yaml" --folder "$folder" --or-resume --ranks 4 --local-ranks 1 --budget-time 36000.000s ${SYSTOLE_STATE:+--ledger "$SYSTOLE_STATE/ledger"} \
  --rendezvous "$SLURM_LAUNCH_NODE_IPADDR:$SYSTOLE_PORT" --token-file "$SYSTOLE_TOKEN" --node "$SLURMD_NODENAME"
