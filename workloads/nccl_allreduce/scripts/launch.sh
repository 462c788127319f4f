#!/usr/bin/env bash
# The master of the job: waits for every worker, runs the benchmark on all GPUs, and judges what it printed.
# Reads: MIN_BYTES, MAX_BYTES, ITERATIONS, BUSBW_FLOOR_GBS, and what hosts.sh reads.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
log=$(mktemp)

give_up() {
  echo "VERDICT: FAIL $*"
  exit 1
}

# shellcheck source=workloads/_mpi_scripts/hosts.sh
source "$here/hosts.sh"
wait_for_workers
run_on_every_gpu all_reduce_perf -b "$MIN_BYTES" -e "$MAX_BYTES" -f 2 -g 1 -n "$ITERATIONS" -c 1 2>&1 | tee "$log" || {
  code=${PIPESTATUS[0]}
  outlast_lost_worker
  judged=$(bash "$here/verdict.sh" "$log") || (($? != 1)) || { # it fails after wrong values, too
    echo "$judged"
    exit 1
  }
  give_up "mpirun ended with exit code $code"
}

bash "$here/verdict.sh" "$log"
