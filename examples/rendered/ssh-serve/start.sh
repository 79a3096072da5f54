#!/bin/sh
# systole: serve-8b on ssh, workload 111111111111
# Runs on each node: holds the files to their digests, then is the server of this node.
set -eu
files=$SYSTOLE_FILES
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
exec "$program" serve /models/llama3.1-8b --name serve-8b --listen 0.0.0.0 --port "8000" --token-file "$SYSTOLE_TOKEN" --slots 8 --context 4096 --waiting 64 --cache-type bf16 --tpot 0.1s --grace 30 --device gpu
