#!/usr/bin/env bash
# Passes the training's log on, and adds to each step how fast it was: tokens/s, and MFU (model FLOPs utilisation, the share
# of the GPUs' dense peak that the model's arithmetic makes up).
# Reads: GPUS; FLOPS_PER_TOKEN of the model; PEAK_FLOPS of all GPUs.
# OLMo's first rank logs its own rate among the numbers of a step: "    throughput/device/tokens_per_second=12,345".
set -euo pipefail

show() {
  awk -v rate="$1" -v gpus="$GPUS" -v flops="$FLOPS_PER_TOKEN" -v peak="$PEAK_FLOPS" 'BEGIN {
    all = rate * gpus
    printf "throughput: %.0f tokens/s, %.0f tokens/s/GPU, MFU %.1f %%\n", all, rate, 100 * all * flops / peak
  }'
}

while IFS= read -r line; do
  printf '%s\n' "$line"
  if [[ $line =~ throughput/device/tokens_per_second=([0-9.,]+) ]]; then
    show "${BASH_REMATCH[1]//,/}"
  fi
done
