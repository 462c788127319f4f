#!/usr/bin/env bash
# Measures an all-reduce over some GPUs of some workers, each GPU with the HCA beside it. Its last line is a verdict.
# Usage: measure.sh GPUS HCAS HOST...    for example measure.sh 2,5 =mlx5_2:1,mlx5_5:1 worker-0.job worker-3.job
# Reads: BYTES, ITERATIONS, BUSBW_FLOOR_GBS, and what hosts.sh reads, as for whole nodes.
# Exit code: 0 good, 1 bad, else no result.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# NCCL takes nothing from a node's /etc/nccl.conf that the environment has (NVIDIA/nccl 2.27 src/misc/param.cc: setenv without
# overwriting), so that these HCAs take the place of all of the node's.
export CUDA_VISIBLE_DEVICES=$1 NCCL_IB_HCA=$2
shift 2
# A folder of its own on every node: one mpirun takes away the shared one, which another is about to use
# (open-mpi/ompi#7049, #8510; 4.1.8 orte/util/session_dir.c). mpirun hands such variables to its daemons (plm_rsh_module.c).
export OMPI_MCA_orte_tmpdir_base=/tmp/measure-$$
log=$(mktemp)

give_up() {
  local why
  why=$(bash "$here/verdict.sh" "$log") || (($? != 1)) || { # it fails after wrong values, too
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
# Together the ranks have all cores of their node. So one alone is bound to all of them, and not to the same few as those of
# other rails, which run at the same time and of which mpirun does not know (open-mpi/ompi#12884).
CORES_PER_GPU=$((CORES_PER_GPU * GPUS_PER_NODE / ${#gpus[@]}))
GPUS_PER_NODE=${#gpus[@]}
NODES=$#

run_on_every_gpu all_reduce_perf -b "$BYTES" -e "$BYTES" -f 2 -g 1 -n "$ITERATIONS" -c 1 >"$log" 2>&1 ||
  give_up "mpirun ended with exit code $?"
bash "$here/verdict.sh" "$log"
