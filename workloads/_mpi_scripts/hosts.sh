# shellcheck shell=bash
# Sourced by the master of an MPI job: finds its workers, waits for them, and runs a program once for each of their GPUs.
# Reads: NODES, GPUS_PER_NODE, CORES_PER_GPU, SSH_TIMEOUT_S, and every NCCL_*, UCX_*, SHARP_* and CUDA_* variable, which it
# hands to the ranks (ssh does not). The script that sources it has a function give_up, which says why and ends the job.
# Sets: hosts, the workers' names in the order of their ranks.

hosts_of_job=/etc/volcano/mpiworker.host # written by Volcano's svc plugin, one worker per line
hostfile=$(mktemp)
hosts=()

# Workers start at different times: their image is large, and so is the number of their nodes.
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

# When a worker goes, as from a node that is drained, mpirun ends at once. Volcano begins the job anew when it sees that pod
# deleted, but never once this one has failed (_volcano.py: PodEvicted, PodFailed), and which of them is first is chance. So
# after a failure the master stays for a while if a worker does not answer.
outlast_lost_worker() {
  local host
  for host in "${hosts[@]}"; do
    if ! ssh -n -o BatchMode=yes -o ConnectTimeout=5 "$host" true 2>/dev/null; then
      echo "Worker $host does not answer any more. If its pod is deleted within ${RESTART_WAIT_S:=120} s, the job begins anew."
      trap 'exit 143' TERM
      sleep "$RESTART_WAIT_S" &
      wait $!
      return
    fi
  done
}

# By its full path, mpirun also tells the other nodes where Open MPI is. Ranks are consecutive on a node, each bound to cores
# of its own. hcoll is off because only MPI's start-up runs here; the master reaches every worker itself, all at once.
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
