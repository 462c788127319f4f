#!/usr/bin/env bash
# Runs torchrun on one node of the training, which runs the trainer on each GPU.
# Usage: launch.sh OPTION..., options of pretraining.train.
# Reads: NODES, GPUS_PER_NODE, NCCL's variables; from the training operator: RANK of the node, MASTER_ADDR, MASTER_PORT.
# Exit code: the trainer's, which torchrun itself replaces by 1: 2 for errors that a retry cannot fix, 143 if it was stopped and
# has saved.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=workloads/_scripts/infiniband.sh
. "$here/infiniband.sh"

meeting_timeout_s=1800 # nodes start together, but pull a large image at different speeds

# Sends SIGTERM to the trainers directly: torchrun would kill them after 30 seconds (PyTorch,
# torch/distributed/elastic/multiprocessing/api.py, close), but they need time to save.
# shellcheck disable=SC2329 # the trap calls it
stop_trainers() {
  local trainers=()
  read -r -a trainers <"/proc/$agent/task/$agent/children" || true
  kill -TERM "${trainers[@]:-$agent}"
}

infiniband=$(infiniband_devices)
[[ -z $infiniband ]] || export NCCL_IB_HCA=$infiniband

errors=$(mktemp)
exec 3> >(exec tee "$errors" >&2)
tee_pid=$!
torchrun --nnodes="$NODES" --nproc-per-node="$GPUS_PER_NODE" --node-rank="$RANK" \
  --rdzv-backend=static --rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT" --rdzv-id=pretraining \
  --rdzv-conf="timeout=$meeting_timeout_s,read_timeout=$meeting_timeout_s" \
  -m pretraining.train "$@" 2>&3 3>&- &
agent=$!
trap 'stop_trainers' TERM

# A signal ends `wait` before torchrun ends.
while kill -0 "$agent" 2>/dev/null; do wait "$agent" || true; done
code=0
wait "$agent" || code=$?
exec 3>&-
wait "$tee_pid" || true
if ((code != 0)); then
  # The report of the first failure (torch/distributed/elastic/multiprocessing/errors/__init__.py): "  exitcode  : 143 (pid: 8)"
  reported=$(sed -n 's/^ *exitcode *: *\(-\{0,1\}[0-9]\{1,\}\).*/\1/p' "$errors" | tail -n 1)
  code=${reported:-$code}
  ((code > 0)) || code=$((128 - code)) # ended by a signal
fi
exit "$code"
