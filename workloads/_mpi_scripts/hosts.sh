# shellcheck shell=bash
# Finds the workers of an MPI job, waits for them, and runs a program once for each of their GPUs. The master sources it.
# Reads: NODES, GPUS_PER_NODE, CORES_PER_GPU, SSH_TIMEOUT_S, and all NCCL_*, UCX_*, SHARP_* and CUDA_* variables, which it
# passes to the ranks (ssh does not). The caller defines give_up, which prints an error and ends the job.
# Sets: hosts, the workers' names in the order of their ranks.

hosts_of_job=/etc/volcano/mpiworker.host # written by Volcano's svc plugin, one worker per line
hostfile=$(mktemp)
hosts=()

# Workers start at different times, because their image is large.
wait_for_worker() {
  local host=$1
  until ssh -n -o BatchMode=yes -o ConnectTimeout=5 "$host" true 2>/dev/null; do
    ((SECONDS < SSH_TIMEOUT_S)) || give_up "no ssh to worker $host within $SSH_TIMEOUT_S s"
    sleep 2
  done
}

wait_for_workers() {
  awk -v slots="$GPUS_PER_NODE" 'NF { print $1 " slots=" slots }' "$hosts_of_job" >"$hostfile"
  mapfile -t hosts < <(awk '{ print $1 }' "$hostfile")
  ((${#hosts[@]} == NODES)) || give_up "$hosts_of_job names ${#hosts[@]} workers instead of $NODES"
  local host
  for host in "${hosts[@]}"; do
    wait_for_worker "$host"
  done
  echo "All $NODES workers answer."
}

# Waits after a failure if a worker does not answer. If a worker's pod is deleted, mpirun ends immediately. Volcano then restarts
# the job, unless it sees the failed master first (PodEvicted and PodFailed in workloads/_lib/mpi.py).
outlast_lost_worker() {
  local host
  for host in "${hosts[@]}"; do
    if ! ssh -n -o BatchMode=yes -o ConnectTimeout=5 "$host" true 2>/dev/null; then
      echo "Worker $host no longer answers. If its pod is deleted within ${RESTART_WAIT_S:=120} s, the job restarts."
      trap 'exit 143' TERM
      sleep "$RESTART_WAIT_S" &
      wait $!
      return
    fi
  done
}

# Runs a program on all GPUs. With its full path, mpirun also finds Open MPI on the other nodes. Ranks are consecutive on a node,
# each bound to different cores. hcoll is off because MPI only starts the ranks. The master connects to all workers in parallel.
run_on_every_gpu() {
  local name exports=()
  for name in $(compgen -e | grep -E '^((NCCL|UCX|SHARP|CUDA)_.*|(LD_LIBRARY_)?PATH)$' | sort); do
    exports+=(-x "$name")
  done
  "$(command -v mpirun)" --allow-run-as-root --hostfile "$hostfile" -np $((NODES * GPUS_PER_NODE)) \
    --map-by "ppr:$GPUS_PER_NODE:node:pe=$CORES_PER_GPU" --rank-by slot --bind-to core \
    -mca coll_hcoll_enable 0 -mca plm_rsh_no_tree_spawn 1 -mca plm_rsh_num_concurrent 800 \
    "${exports[@]}" "$@"
}
