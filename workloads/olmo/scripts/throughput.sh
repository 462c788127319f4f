#!/usr/bin/env bash
# Copies the training's log and adds tokens/s and MFU to each step. Reads: the variables of mfu.sh.
# OLMo's first rank logs its own rate: "    throughput/device/tokens_per_second=12,345".
set -euo pipefail

# shellcheck source=workloads/_scripts/mfu.sh
. "$(dirname "${BASH_SOURCE[0]}")/mfu.sh"

while IFS= read -r line; do
  printf '%s\n' "$line"
  if [[ $line =~ throughput/device/tokens_per_second=([0-9.,]+) ]]; then
    show_rate throughput "${BASH_REMATCH[1]//,/}" "$GPUS"
  fi
done
