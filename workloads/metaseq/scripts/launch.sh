#!/usr/bin/env bash
# Runs in the master of the job: waits for all workers, then trains on all GPUs. The data are synthetic: this measures the speed
# of a training, and its loss means nothing.
# Reads: the variables of hosts.sh and throughput.sh.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")

give_up() {
  echo "FAILED: $*"
  exit 1
}

# shellcheck source=workloads/_mpi_scripts/hosts.sh
source "$here/hosts.sh"
wait_for_workers
run_on_every_gpu bash "$here/train.sh" "${hosts[0]}" 2>&1 | bash "$here/throughput.sh" || {
  code=${PIPESTATUS[0]}
  outlast_lost_worker
  give_up "mpirun ended with exit code $code"
}
