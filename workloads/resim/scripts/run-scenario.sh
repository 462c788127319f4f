#!/usr/bin/env bash
# Runs a command for one scenario of a batch, and keeps its outputs only if it succeeds.
# Usage: run-scenario.sh COMMAND [ARGUMENT...]
# Reads: OUTPUTS (mount path of the output container), NAMESPACE and BATCH (its folder there is <namespace>/<batch>), LIST (file in
# that folder with one scenario per line; if empty, scenarios are numbered), JOB_COMPLETION_INDEX, POD, NODE, INPUT.
# Environment of the command: SCENARIO, INPUT (folder to read), OUTPUT (folder to write), CHECKPOINT (folder that the command may
# create for the next attempt), STATS (file for additional numbers, as lines `"name": 1`). At SIGTERM, the command must end within
# the grace period.
#
# In the batch's folder: results/<scenario>/ is complete, because a folder is renamed in one step (hierarchical namespace).
# attempts/<scenario>/<pod>/ belongs to a running or unsuccessful attempt; it has a file EVICTED or FAILED if there was time to
# write it. A rename fails if the target folder is not empty (azure-storage-fuse 00471d9, component/libfuse/libfuse_handler.go,
# libfuse_rename).
# Exit code: the command's; 64 for errors that a retry cannot fix.
set -euo pipefail

# shellcheck disable=SC2153 # BATCH is a variable of the pod
batch=$OUTPUTS/$NAMESPACE/$BATCH
number=$JOB_COMPLETION_INDEX
begun=$(date +%s)
running='' stopping=''

stop() {
  stopping=yes
  if [[ -n $running ]]; then kill -TERM "$running" 2>/dev/null || true; fi
}
trap stop TERM

scenario_of() {
  if [[ -z $LIST ]]; then
    printf 'scenario-%06d\n' "$number"
  else
    sed -n "$((number + 1)){p;q}" "$batch/$LIST"
  fi
}

skip_finished() {
  echo "VERDICT: PASS scenario=$scenario has results already"
  exit 0
}

# Waits for the last lines of the command, and for its remaining processes.
close_log() {
  exec 3>&-
  wait "$writer" || true
}

# Usage: leave EVICTED|FAILED CODE
leave() {
  echo "exit code $2" >"$attempt/$1"
  rm -rf "$OUTPUT"
  close_log
  echo "VERDICT: FAIL scenario=$scenario ${1,,}, exit code $2"
  exit "$2"
}

# Prints the command's additional numbers. Other lines would make the result unreadable, so they only go to the log.
numbers() {
  local line pair='"[A-Za-z0-9_. -]+": *(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|"[A-Za-z0-9_. /:-]*")'
  while IFS= read -r line || [[ -n $line ]]; do
    if [[ $line =~ ^[[:space:]]*($pair([[:space:]]*,[[:space:]]*$pair)*)[[:space:],]*$ ]]; then
      printf ' %s,\n' "${BASH_REMATCH[1]}"
    elif [[ $line =~ [^[:space:]] ]]; then
      printf 'not added to result.json, because it is not like "name": 1: %q\n' "$line" >&2
    fi
  done
}

# Prints the result of a successful attempt. Outputs with this file are complete.
result() {
  local size file bytes=0 files=''
  while IFS=$'\t' read -r -d '' size file; do
    file=${file#"$OUTPUT/"} file=${file//[[:cntrl:]]/?} file=${file//\\/\\\\}
    files+="${files:+, }\"${file//\"/\\\"}\": $size"
    bytes=$((bytes + size))
  done < <(find "$OUTPUT" -type f -exec stat --printf '%s\t%n\0' {} + | sort -z -k 2)
  printf '{"scenario": "%s", "pod": "%s", "node": "%s", "attempts": %d,\n' "$scenario" "$POD" "$NODE" "$attempts"
  printf ' "started": %d, "ended": %d, "outputBytes": %d,\n' "$begun" "$(date +%s)" "$bytes"
  if [[ -s $STATS ]]; then numbers <"$STATS"; fi
  printf ' "files": {%s}}\n' "$files"
}

scenario=$(scenario_of)
if [[ -z $scenario ]]; then
  echo "VERDICT: FAIL $batch/$LIST has no line $((number + 1))"
  exit 64
fi
complete=$batch/results/$scenario
attempt=$batch/attempts/$scenario/$POD
if [[ -e $complete/result.json ]]; then skip_finished; fi

export SCENARIO=$scenario INPUT OUTPUT=$attempt/output CHECKPOINT=$batch/checkpoints/$scenario STATS=/tmp/stats
mkdir -p "$OUTPUT" "$batch/results"
attempts=$(find "$batch/attempts/$scenario" -mindepth 1 -maxdepth 1 -type d | wc -l)
echo "scenario $scenario, attempt $attempts, on $NODE" | tee "$attempt/log.txt"

# Copies the log beside the outputs, because a pod's log is lost with its node.
exec 3> >(exec tee -a "$attempt/log.txt")
writer=$!
if [[ -z $stopping ]]; then
  "$@" >&3 2>&1 &
  running=$!
fi
code=143
while [[ -n $running ]]; do
  code=0
  wait "$running" || code=$?
  if ! kill -0 "$running" 2>/dev/null; then running=''; fi
done
if ((code != 0)); then leave "$([[ -n $stopping ]] && echo EVICTED || echo FAILED)" "$code"; fi
close_log
result >"$attempt/result.json"
# Empty folders are left if a user deletes a scenario's blobs to run it again.
if [[ -d $complete ]]; then find "$complete" -type d -empty -delete; fi
# Fails if another attempt was first, whose result counts.
if ! mv -T "$attempt" "$complete"; then
  rm -rf "$attempt"
  if [[ -e $complete/result.json ]]; then skip_finished; fi
  echo "VERDICT: FAIL scenario=$scenario its outputs could not be moved to $complete"
  exit 1
fi
rm -rf "$CHECKPOINT"
rmdir --ignore-fail-on-non-empty "$batch/attempts/$scenario" || true # unless earlier attempts are left
echo "VERDICT: PASS scenario=$scenario attempts=$attempts seconds=$(($(date +%s) - begun))"
