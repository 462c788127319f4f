#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Checks the memory of GPUs. `errors` finds errors that ECC did not correct, and rows that wait to be remapped: a reset of the GPU
# fixes both. `remapping` finds rows that could not be remapped: the GPU must be replaced (NVIDIA, GPU memory error management).
# Usage: gpu-memory.sh errors|remapping
source "$(dirname "$0")/lib.sh"

wrong=()
if [[ $1 == errors ]]; then
  smi_or_unknown --query-gpu=index,ecc.errors.uncorrected.volatile.total --format=csv,noheader
  while IFS=', ' read -r gpu count; do
    case $count in
      *"requires reset"*) wrong+=("GPU $gpu requires a reset") ;;
      0) ;;
      [1-9]*) wrong+=("GPU $gpu has errors that ECC did not correct") ;;
      *) unknown "GPU $gpu does not count errors: $count" ;;
    esac
  done <<<"$found"
fi

# GPUs with partitions (MIG) do not report remapped rows.
declare -A asked=([errors]=pending [remapping]=failure) words=([pending]="waits to be remapped" [failure]="could not be remapped")
smi_or_unknown --query-remapped-rows="gpu_bus_id,remapped_rows.${asked[$1]}" --format=csv,noheader
while IFS=', ' read -r gpu is; do
  case $is in
    *"requires reset"*) wrong+=("GPU $gpu requires a reset") ;;
    0 | No) ;;
    1 | Yes) wrong+=("a row of GPU $gpu ${words[${asked[$1]}]}") ;;
    *) unknown "GPU $gpu does not report remapped rows: $is" ;;
  esac
done <<<"$found"
found=$(printf '%s; ' "${wrong[@]}")
((${#wrong[@]} == 0)) || problem "${found%; }"
ok "no error in the memory of GPUs"
