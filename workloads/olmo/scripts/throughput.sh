#!/usr/bin/env bash
# Passes the training's log on, and adds to each step how fast it was: tokens/s and MFU. Reads what mfu.sh does.
# OLMo's first rank logs its own rate among the numbers of a step: "    throughput/device/tokens_per_second=12,345".
set -euo pipefail

# shellcheck source=workloads/_scripts/mfu.sh
. "$(dirname "${BASH_SOURCE[0]}")/mfu.sh"

while IFS= read -r line; do
  printf '%s\n' "$line"
  if [[ $line =~ throughput/device/tokens_per_second=([0-9.,]+) ]]; then
    show_rate throughput "${BASH_REMATCH[1]//,/}" "$GPUS"
  fi
done
