#!/usr/bin/env bash
# Measures an all-reduce over some GPUs of some workers, each GPU with its neighbouring HCA. Its last line is a verdict.
# Usage: measure.sh GPUS HCAS HOST...    for example measure.sh 2,5 =mlx5_2:1,mlx5_5:1 worker-0.job worker-3.job
# Reads: BYTES, ITERATIONS, BUSBW_FLOOR_GBS, and the variables of hosts.sh for whole nodes.
# Exit code: 0 good, 1 bad, others no result.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# The environment has precedence over a node's /etc/nccl.conf (NVIDIA/nccl 2.27 src/misc/param.cc: setenv without overwriting), so
# these HCAs replace all HCAs of the node.
export CUDA_VISIBLE_DEVICES=$1 NCCL_IB_HCA=$2
shift 2
# Each mpirun needs a separate folder on every node: another one would delete a shared folder (open-mpi/ompi#7049, #8510; 4.1.8
# orte/util/session_dir.c). mpirun passes such variables to its daemons (plm_rsh_module.c).
export OMPI_MCA_orte_tmpdir_base=/tmp/measure-$$
log=$(mktemp)

give_up() {
  local why
  why=$(bash "$here/verdict.sh" "$log") || (($? != 1)) || { # mpirun also fails after wrong values
    echo "$why"
    exit 1
  }
  why=$(grep -m1 -oE 'NCCL WARN .*|Test (CUDA|NCCL) failure .*|ORTE .*' "$log" || tail -1 "$log")
  echo "VERDICT: UNKNOWN $*${why:+: $why}"
  exit 2
}

# shellcheck source=workloads/_mpi_scripts/hosts.sh
source "$here/hosts.sh"
trap 'rm -f "$log" "$hostfile"' EXIT
IFS=, read -ra gpus <<<"$CUDA_VISIBLE_DEVICES"
printf "%s slots=${#gpus[@]}\n" "$@" >"$hostfile"
# The ranks share all cores of their node. Otherwise ranks of other rails, which run at the same time under another mpirun, would
# be bound to the same cores (open-mpi/ompi#12884).
CORES_PER_GPU=$((CORES_PER_GPU * GPUS_PER_NODE / ${#gpus[@]}))
GPUS_PER_NODE=${#gpus[@]}
NODES=$#

run_on_every_gpu all_reduce_perf -b "$BYTES" -e "$BYTES" -f 2 -g 1 -n "$ITERATIONS" -c 1 >"$log" 2>&1 ||
  give_up "mpirun ended with exit code $?"
bash "$here/verdict.sh" "$log"
