#!/usr/bin/env bash
# Runs a training of Metaseq as a scenario: reads the inputs, trains on all GPUs of this node, and writes outputs and the log. The
# training data are synthetic, like in the workload metaseq.
# Reads: SCENARIO, INPUT, OUTPUT, STATS (see run-scenario.sh), OUTPUT_FILES and OUTPUT_SIZE (such as 16Mi), and the variables of
# hosts.sh and throughput.sh.
set -euo pipefail
set -m # one process group for the training, so that one signal ends it

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
