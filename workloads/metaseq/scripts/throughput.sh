#!/usr/bin/env bash
# Passes the training's log on, and adds to each update how fast it was: tokens/s, and MFU (model FLOPs utilisation, the
# share of the GPUs' dense peak that the model's arithmetic makes up). Ends with the mean, without the first updates.
# Reads: GPUS; FLOPS_PER_TOKEN of the model; PEAK_FLOPS of all GPUs.
# metaseq's line of an update: <time> | INFO | train_inner | {"epoch": 1, ..., "wps": "739601", ...}, where wps is tokens/s
# over all GPUs, 0 in the first.
set -euo pipefail

warm_up=3 # updates in which kernels and communicators are still being set up
rates=()

show() {
  awk -v what="$1" -v rate="$2" -v gpus="$GPUS" -v flops="$FLOPS_PER_TOKEN" -v peak="$PEAK_FLOPS" 'BEGIN {
    printf "%s: %.0f tokens/s, %.0f tokens/s/GPU, MFU %.1f %%\n", what, rate, rate / gpus, 100 * rate * flops / peak
  }'
}

while IFS= read -r line; do
  printf '%s\n' "$line"
  if [[ $line =~ \|\ train_inner\ \|.*\"wps\":\ \"([0-9.e+]+)\" && ${BASH_REMATCH[1]} != 0 ]]; then
    rates+=("${BASH_REMATCH[1]}")
    show throughput "${BASH_REMATCH[1]}"
  fi
done

if ((${#rates[@]} > warm_up)); then
  mean=$(printf '%s\n' "${rates[@]:warm_up}" | awk '{ sum += $1 } END { printf "%.6g", sum / NR }')
  show "mean of the last $((${#rates[@]} - warm_up)) updates" "$mean"
fi
