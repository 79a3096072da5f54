#!/bin/sh
# systole: ddp on slurm, workload 111111111111
# Runs on each node: holds the files to their digests, then is the agent of this node.
set -eu
export NCCL_DEBUG=WARN # says what fails and nothing else; INFO fills the logs of every rank
export NCCL_SOCKET_IFNAME=enp0s12 # control traffic takes the host's own card
export NCCL_FASTRAK_CTRL_DEV=enp0s12 # the plugin's control traffic too
export NCCL_FASTRAK_IFNAME=enp6s0,enp7s0,enp13s0,enp14s0,enp134s0,enp135s0,enp141s0,enp142s0 # the eight cards, one a GPU
export NCCL_LIB_DIR=/var/lib/tcpxo/lib64 # where the plugin and its profile are; nccl-env-profile.sh of it says the rest
export NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY=/dev/aperture_devices # the devices of the low-latency path
if [ -z "${SYSTOLE_NETWORK:-}" ]; then # what the node's own script of bash says of its network
  SYSTOLE_NETWORK="$NCCL_LIB_DIR/nccl-env-profile.sh"
  export SYSTOLE_NETWORK
  [ -r "$SYSTOLE_NETWORK" ] || {
    echo "systole: $(uname -n) has no $SYSTOLE_NETWORK" >&2
    exit 3
  }
  exec bash -c '. "$SYSTOLE_NETWORK"; exec /bin/sh "$0"' "$0"
fi
export LD_LIBRARY_PATH=/var/lib/tcpxo/lib64"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
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
exec "$program" run "$files/workload.yaml" --folder "$folder" --or-resume --ranks 16 --local-ranks 8 \
  --rendezvous "$SLURM_LAUNCH_NODE_IPADDR:$SYSTOLE_PORT" --token-file "$SYSTOLE_TOKEN" --node "$SLURMD_NODENAME"
