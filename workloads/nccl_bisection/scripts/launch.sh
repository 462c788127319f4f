#!/usr/bin/env bash
# Runs in the master of the job: waits for the workers, lists their nodes and HCAs, and starts the search.
# Reads: the variables of hosts.sh and search.py.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
fleet=$(mktemp)

give_up() {
  echo "To check the nodes: docs/health-check.md. About this search: docs/nccl-bisection.md."
  echo "VERDICT: UNKNOWN $*"
  exit 2
}

# shellcheck source=workloads/_mpi_scripts/hosts.sh
source "$here/hosts.sh"
mapfile -t workers < <(awk 'NF { print $1 }' "$hosts_of_job")
((${#workers[@]} == NODES)) || give_up "$hosts_of_job names ${#workers[@]} workers instead of $NODES"

# The search leaves out workers that do not answer, and reports them.
for host in "${workers[@]}"; do
  if (wait_for_worker "$host") >/dev/null; then
    echo "$host slots=1" >>"$hostfile"
    echo "HOST $host"
  else
    echo "LOST $host no ssh within $SSH_TIMEOUT_S s"
  fi
done >"$fleet"
answered=$(grep -c '^HOST ' "$fleet" || true)
echo "$answered of $NODES workers answer."
((answered > 1)) || give_up "$answered of $NODES workers answer, but a single node uses no link"

# One process on each worker, for any number of GPUs.
(NODES=$answered GPUS_PER_NODE=1 run_on_every_gpu bash "$here/links.sh") >>"$fleet" ||
  give_up "the HCAs of the workers could not be listed: mpirun ended with exit code $?"
exec python3 "$here/search.py" "$fleet"
