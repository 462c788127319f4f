#!/usr/bin/env bash
# The master of the job: waits for every worker, runs the benchmark on all GPUs, and judges what it printed.
# Reads: NODES, GPUS_PER_NODE, CORES_PER_GPU, MIN_BYTES, MAX_BYTES, ITERATIONS, SSH_TIMEOUT_S, BUSBW_FLOOR_GBS, and every
# NCCL_*, UCX_*, SHARP_* and CUDA_* variable, which it hands to the ranks (ssh does not).
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
hosts_of_job=/etc/volcano/mpiworker.host # written by Volcano's svc plugin, one worker per line
hostfile=$(mktemp)
log=$(mktemp)

give_up() {
  echo "VERDICT: FAIL $*"
  exit 1
}

# Workers start at different times: their image is large, and so is the number of their nodes.
wait_for_worker() {
  local host=$1
  until ssh -n -o BatchMode=yes -o ConnectTimeout=5 "$host" true 2>/dev/null; do
    ((SECONDS < SSH_TIMEOUT_S)) || give_up "no ssh to worker $host within $SSH_TIMEOUT_S s"
    sleep 2
  done
}

awk -v slots="$GPUS_PER_NODE" 'NF { print $1 " slots=" slots }' "$hosts_of_job" >"$hostfile"
mapfile -t hosts < <(awk '{ print $1 }' "$hostfile")
((${#hosts[@]} == NODES)) || give_up "$hosts_of_job names ${#hosts[@]} workers instead of $NODES"
for host in "${hosts[@]}"; do
  wait_for_worker "$host"
done
echo "All $NODES workers answer."

exports=()
for name in $(compgen -e | grep -E '^((NCCL|UCX|SHARP|CUDA)_.*|(LD_LIBRARY_)?PATH)$' | sort); do
  exports+=(-x "$name")
done

# By its full path, mpirun also tells the other nodes where Open MPI is. Ranks are consecutive on a node, each bound to cores
# of its own. hcoll is off because only MPI's start-up runs here; the master reaches every worker itself, all at once.
"$(command -v mpirun)" --allow-run-as-root --hostfile "$hostfile" -np $((NODES * GPUS_PER_NODE)) \
  --map-by "ppr:$GPUS_PER_NODE:node:pe=$CORES_PER_GPU" --bind-to core \
  -mca coll_hcoll_enable 0 -mca plm_rsh_no_tree_spawn 1 -mca plm_rsh_num_concurrent 800 \
  "${exports[@]}" \
  all_reduce_perf -b "$MIN_BYTES" -e "$MAX_BYTES" -f 2 -g 1 -n "$ITERATIONS" -c 1 2>&1 | tee "$log" ||
  give_up "mpirun ended with exit code ${PIPESTATUS[0]}"

bash "$here/verdict.sh" "$log"
