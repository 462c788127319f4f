#!/usr/bin/env bash
# A training of Metaseq as a scenario: reads its inputs, trains on all GPUs of this node, writes outputs, its log among them.
# What it trains on is synthetic, as in the workload metaseq.
# Reads: SCENARIO, INPUT, OUTPUT, STATS (run-scenario.sh says what they are), OUTPUT_FILES and OUTPUT_SIZE (as 16Mi), and what
# hosts.sh and throughput.sh read.
set -euo pipefail
set -m # the training is a group of processes, which ends at once

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=workloads/_mpi_scripts/hosts.sh
source "$here/hosts.sh"

if [[ ! -d $INPUT ]]; then
  echo "the input container has no folder ${INPUT#/input/} (workloadOptions.resim.dataset)"
  exit 64
fi
from=$INPUT
if [[ -d $INPUT/$SCENARIO ]]; then from=$INPUT/$SCENARIO; fi
bytes=$(find "$from" -type f -exec cat {} + | wc -c)
printf '"inputBytes": %d\n' "$bytes" >"$STATS"
echo "read $bytes bytes"

echo "localhost slots=$GPUS_PER_NODE" >"$hostfile"
train() {
  run_on_every_gpu bash "$here/train.sh" localhost 2>&1 | bash "$here/throughput.sh" | tee "$OUTPUT/training.log"
}

train &
trap 'kill -TERM %1; wait %1 || true; exit 143' TERM
wait %1
trap - TERM
for ((file = 0; file < OUTPUT_FILES; file++)); do
  head -c "${OUTPUT_SIZE}B" /dev/urandom >"$OUTPUT/output-$file.bin"
done
