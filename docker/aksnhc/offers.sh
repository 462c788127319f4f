#!/usr/bin/env bash
# Prints which devices of its VM size this node does not offer: `the node offers 7 of 8 nvidia.com/gpu, 6 of 8
# rdma/hca`, or an empty line if it offers all. Waits while a kind has no capacity: its driver or device plugin does not
# run yet. Devices must be missing for SETTLE_S seconds, because device plugins restart.
# Usage: NODE_NAME=... offers.sh RESOURCE=COUNT...
set -euo pipefail

settle=${SETTLE_S:-60}
for ((since = SECONDS; ; )); do
  lacking="" waits=false
  for wanted in "$@"; do
    name=${wanted%=*} count=${wanted##*=}
    template="{{with index .status.capacity \"$name\"}}{{.}}{{end}} {{with index .status.allocatable \"$name\"}}{{.}}{{end}}"
    found=$(kubectl get node "$NODE_NAME" --output go-template="$template") || found=""
    read -r capacity offered <<<"$found" || true
    [[ ${capacity:-0} =~ ^[1-9] && ${offered:-} =~ ^[0-9]+$ ]] || waits=true
    [[ $waits == true ]] || ((offered >= count)) || lacking+=", $offered of $count $name"
  done
  if [[ $waits == true ]]; then
    since=$SECONDS
  elif [[ -z $lacking ]] || ((SECONDS - since >= settle)); then
    echo "${lacking:+the node offers ${lacking#, }}"
    exit
  fi
  sleep "$((settle < 10 ? 1 : 10))"
done
