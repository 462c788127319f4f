#!/usr/bin/env bash
# One node of the training: torchrun, which runs the trainer on each of its GPUs.
# Usage: launch.sh OPTION..., those of pretraining.train.
# Reads: NODES, GPUS_PER_NODE, NCCL's own variables; and of the training operator RANK (the node's), MASTER_ADDR, MASTER_PORT.
# Exit code: the trainer's, which torchrun has as 1: 2 for what another try would not mend, 143 where it was told to stop and
# has saved.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=workloads/_scripts/infiniband.sh
. "$here/infiniband.sh"

meeting_timeout_s=1800 # nodes start together, but pull a large image at different speed

# Tells the trainers themselves: torchrun would kill them 30 seconds after it was told (PyTorch,
# torch/distributed/elastic/multiprocessing/api.py, close), and they need what it takes to save.
# shellcheck disable=SC2329 # by the trap
pass_on() {
  local trainers=()
  read -r -a trainers <"/proc/$agent/task/$agent/children" || true
  kill -TERM "${trainers[@]:-$agent}"
}

infiniband=$(infiniband_devices)
[[ -z $infiniband ]] || export NCCL_IB_HCA=$infiniband

said=$(mktemp)
exec 3> >(exec tee "$said" >&2)
teller=$!
torchrun --nnodes="$NODES" --nproc-per-node="$GPUS_PER_NODE" --node-rank="$RANK" \
  --rdzv-backend=static --rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT" --rdzv-id=pretraining \
  --rdzv-conf="timeout=$meeting_timeout_s,read_timeout=$meeting_timeout_s" \
  -m pretraining.train "$@" 2>&3 3>&- &
agent=$!
trap 'pass_on' TERM

# A signal ends `wait` before torchrun ends.
while kill -0 "$agent" 2>/dev/null; do wait "$agent" || true; done
code=0
wait "$agent" || code=$?
exec 3>&-
wait "$teller" || true
if ((code != 0)); then
  # The report of the first failure (torch/distributed/elastic/multiprocessing/errors/__init__.py): "  exitcode  : 143 (pid: 8)"
  theirs=$(sed -n 's/^ *exitcode *: *\(-\{0,1\}[0-9]\{1,\}\).*/\1/p' "$said" | tail -n 1)
  code=${theirs:-$code}
  ((code > 0)) || code=$((128 - code)) # by a signal
fi
exit "$code"
