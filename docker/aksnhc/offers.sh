#!/usr/bin/env bash
# Prints what this node lacks of the devices that its VM size has: `the node offers 7 of 8 nvidia.com/gpu, 6 of 8 rdma/hca`.
# Nothing if it is known to be complete. Waits while a kind is not offered at all: its driver or device plugin is not there yet.
# What is missing must stay missing for SETTLE_S seconds, for device plugins restart.
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
