#!/usr/bin/env bash
# Runs in the master of the job: waits for all workers, runs the benchmark on all GPUs, and judges its output.
# Reads: MIN_BYTES, MAX_BYTES, ITERATIONS, BUSBW_FLOOR_GBS, and the variables of hosts.sh.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
log=$(mktemp)

# fail CODE VERDICT: ends the job. The verdict is the last line, which other programs read.
fail() {
  echo "To find the cause: docs/health-check.md (check each node), docs/nccl-bisection.md (find slow nodes, links and rails)."
  echo "$2"
  exit "$1"
}

give_up() {
  fail 1 "VERDICT: FAIL $*"
}

# shellcheck source=workloads/_mpi_scripts/hosts.sh
source "$here/hosts.sh"
wait_for_workers
run_on_every_gpu all_reduce_perf -b "$MIN_BYTES" -e "$MAX_BYTES" -f 2 -g 1 -n "$ITERATIONS" -c 1 2>&1 | tee "$log" || {
  code=${PIPESTATUS[0]}
  outlast_lost_worker
  verdict=$(bash "$here/verdict.sh" "$log") || (($? != 1)) || fail 1 "$verdict" # mpirun also fails after wrong values
  give_up "mpirun ended with exit code $code"
}

verdict=$(bash "$here/verdict.sh" "$log") || fail $? "$verdict"
echo "$verdict"
