#!/usr/bin/env bash
# Copies the training's log and adds tokens/s and MFU to each update; at the end it prints their mean without the first updates.
# Reads: the variables of mfu.sh.
# metaseq's line of an update: <time> | INFO | train_inner | {"epoch": 1, ..., "wps": "739601", ...}, where wps is tokens/s
# over all GPUs, 0 in the first.
set -euo pipefail

# shellcheck source=workloads/_scripts/mfu.sh
source "$(dirname "${BASH_SOURCE[0]}")/mfu.sh"

warm_up=3 # updates that still set up kernels and communicators
rates=()

while IFS= read -r line; do
  printf '%s\n' "$line"
  if [[ $line =~ \|\ train_inner\ \|.*\"wps\":\ \"([0-9.e+]+)\" && ${BASH_REMATCH[1]} != 0 ]]; then
    rates+=("${BASH_REMATCH[1]}")
    show_rate throughput "${BASH_REMATCH[1]}" 1
  fi
done

if ((${#rates[@]} > warm_up)); then
  mean=$(printf '%s\n' "${rates[@]:warm_up}" | awk '{ sum += $1 } END { printf "%.6g", sum / NR }')
  show_rate "mean of the last $((${#rates[@]} - warm_up)) updates" "$mean" 1
fi
