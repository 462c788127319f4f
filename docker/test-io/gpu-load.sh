#!/usr/bin/env bash
# Loads all GPUs of this pod and judges the result of gpu-burn. Usage: gpu-load.sh SECONDS [MEMORY_MB]
# The memory is fixed: by default, gpu-burn uses 90 % of the free memory, which slices of a GPU share.
set -euo pipefail

seconds=$1 memory=${2:-1024}
log=$(mktemp)

cd /opt/gpu-burn # gpu-burn loads its kernel from the working directory
# At its end, it waits for the time of -stts, half a minute by default.
./gpu_burn -m "$memory" -stts 2 "$seconds" >"$log" 2>&1 &
burning=$!
trap 'kill -TERM "$burning" 2>/dev/null; wait "$burning" || true; exit 143' TERM
code=0
wait "$burning" || code=$?

# Carriage returns separate the progress; the last part is complete.
last=$(tr '\r' '\n' <"$log" | grep 'Gflop/s' | tail -n 1 || true)
gflops=$(grep -o '([0-9]* Gflop/s)' <<<"$last" | tr -d -c '0-9\n' | awk '{sum += $1} END {print sum + 0}' || true)
healthy=$(grep -c 'GPU [0-9]*: OK' "$log" || true)
faulty=$(grep -c 'GPU [0-9]*: FAULTY' "$log" || true)
if ((code != 0 || healthy == 0 || faulty > 0)); then
  tail -n 20 "$log"
  echo "VERDICT: FAIL gpu-burn ended with exit code $code; $healthy GPUs are healthy, $faulty are faulty"
  exit 1
fi
echo "VERDICT: PASS gpus=$healthy seconds=$seconds gflops=$gflops"
