#!/usr/bin/env bash
# The master of the job: waits for the workers, asks each for its node and its HCAs, and has the pool searched.
# Reads: what hosts.sh and search.py read.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
fleet=$(mktemp)

give_up() {
  echo "VERDICT: UNKNOWN $*"
  exit 2
}

# shellcheck source=workloads/_mpi_scripts/hosts.sh
source "$here/hosts.sh"
mapfile -t workers < <(awk 'NF { print $1 }' "$hosts_of_job")
((${#workers[@]} == NODES)) || give_up "$hosts_of_job names ${#workers[@]} workers instead of $NODES"

# A worker that does not answer is left out, and told of: the others can be searched without it.
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
((answered > 1)) || give_up "$answered of $NODES workers answer, and one alone uses no link"

# One process on each, whatever GPUs it has.
(NODES=$answered GPUS_PER_NODE=1 run_on_every_gpu bash "$here/links.sh") >>"$fleet" ||
  give_up "workers could not be asked for their HCAs: mpirun ended with exit code $?"
exec python3 "$here/search.py" "$fleet"
