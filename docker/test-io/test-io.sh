#!/usr/bin/env bash
# Loads node and storage like a resimulation: reads inputs, loads the GPU, writes outputs, prints the throughput.
# Usage: test-io.sh GPU_SECONDS OUTPUT_FILES OUTPUT_SIZE (such as 16Mi)
# Reads: SCENARIO, INPUT, OUTPUT, CHECKPOINT, STATS (see workloads/resim/scripts/run-scenario.sh).
# At SIGTERM, it stores how long it has loaded the GPU, where the next attempt continues.
set -euo pipefail

gpu_seconds=$1 files=$2 size=$3
here=$(dirname "${BASH_SOURCE[0]}")
loaded=$(cat "$CHECKPOINT/gpu-seconds" 2>/dev/null || echo 0)

milliseconds() { date +%s%3N; }

# Prints megabytes per second. Usage: rate BYTES MILLISECONDS
rate() { awk -v bytes="$1" -v ms="$2" 'BEGIN {printf "%.1f", bytes / 1000 / (ms > 0 ? ms : 1)}'; }

read_inputs() {
  local begun from=$INPUT
  begun=$(milliseconds)
  if [[ ! -d $INPUT ]]; then
    echo "the input container has no folder ${INPUT#/input/} (workloadOptions.resim.dataset)"
    exit 64
  fi
  if [[ -d $INPUT/$SCENARIO ]]; then from=$INPUT/$SCENARIO; fi
  in_bytes=$(find "$from" -type f -exec cat {} + | wc -c)
  in_ms=$(($(milliseconds) - begun))
}

# Writes to another name first, so that no attempt reads an incomplete file.
save() {
  mkdir -p "$CHECKPOINT"
  echo "$1" >"$CHECKPOINT/gpu-seconds.new"
  mv "$CHECKPOINT/gpu-seconds.new" "$CHECKPOINT/gpu-seconds"
}

stop() {
  local now
  now=$((loaded + ($(date +%s) - load_begun)))
  kill -TERM "$loading" 2>/dev/null || true
  wait "$loading" || true
  save "$((now < gpu_seconds ? now : gpu_seconds))"
  echo "stopped after $now of $gpu_seconds seconds on the GPU"
  exit 143
}

load_gpu() {
  local left=$((gpu_seconds - loaded))
  if ((left <= 0)); then return; fi
  if ((loaded > 0)); then echo "continuing after $loaded of $gpu_seconds seconds on the GPU"; fi
  load_begun=$(date +%s)
  bash "$here/gpu-load.sh" "$left" &
  loading=$!
  trap stop TERM
  wait "$loading"
}

write_outputs() {
  local begun
  begun=$(milliseconds)
  for ((file = 0; file < files; file++)); do
    head -c "${size}B" /dev/urandom >"$OUTPUT/output-$file.bin"
  done
  out_bytes=$(find "$OUTPUT" -type f -exec stat -c %s {} + | awk '{sum += $1} END {print sum + 0}')
  out_ms=$(($(milliseconds) - begun))
}

read_inputs
load_gpu
write_outputs
printf '"inputBytes": %d, "inputSeconds": %s, "outputSeconds": %s\n' "$in_bytes" \
  "$(awk -v ms="$in_ms" 'BEGIN {print ms / 1000}')" "$(awk -v ms="$out_ms" 'BEGIN {print ms / 1000}')" >"$STATS"
echo "read $in_bytes bytes at $(rate "$in_bytes" "$in_ms") MB/s, wrote $out_bytes bytes at $(rate "$out_bytes" "$out_ms") MB/s"
