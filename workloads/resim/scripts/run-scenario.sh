#!/usr/bin/env bash
# One index of a batch: runs a command for its scenario, and keeps what it wrote only if it ended well.
# Usage: run-scenario.sh COMMAND [ARGUMENT...]
# Reads: OUTPUTS (where the output container is mounted), NAMESPACE and BATCH (its folder there, <namespace>/<batch>), LIST
# (file below it with a scenario a line; empty: they are numbered), JOB_COMPLETION_INDEX, POD, NODE, INPUT.
# The command is given: SCENARIO, INPUT (folder to read), OUTPUT (folder to write), CHECKPOINT (folder to make, which the
# next attempt finds again), STATS (file for numbers of its own, as `"name": 1` in lines). SIGTERM asks it to end within
# the grace period.
#
# In the batch's folder: results/<scenario>/ is complete, since a folder is renamed at once (hierarchical namespace);
# attempts/<scenario>/<pod>/ is under way, or what is left of an attempt, with a file EVICTED or FAILED where it could
# still be written. A folder does not take the place of one that is not empty (azure-storage-fuse 00471d9,
# component/libfuse/libfuse_handler.go, libfuse_rename).
# Exit code: the command's; 64 for what another attempt would not mend.
set -euo pipefail

# shellcheck disable=SC2153 # BATCH is given
batch=$OUTPUTS/$NAMESPACE/$BATCH
number=$JOB_COMPLETION_INDEX
begun=$(date +%s)
running='' told=''

told_to_end() {
  told=yes
  if [[ -n $running ]]; then kill -TERM "$running" 2>/dev/null || true; fi
}
trap told_to_end TERM

scenario_of() {
  if [[ -z $LIST ]]; then
    printf 'scenario-%06d\n' "$number"
  else
    sed -n "$((number + 1)){p;q}" "$batch/$LIST"
  fi
}

done_before() {
  echo "VERDICT: PASS scenario=$scenario was done before"
  exit 0
}

# Waits for what the command wrote last, and for processes of its that have outlived it.
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

# Prints the numbers that the command has left. Any other line would make the result unreadable: it goes to the log.
numbers() {
  local line pair='"[A-Za-z0-9_. -]+": *(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|"[A-Za-z0-9_. /:-]*")'
  while IFS= read -r line || [[ -n $line ]]; do
    if [[ $line =~ ^[[:space:]]*($pair([[:space:]]*,[[:space:]]*$pair)*)[[:space:],]*$ ]]; then
      printf ' %s,\n' "${BASH_REMATCH[1]}"
    elif [[ $line =~ [^[:space:]] ]]; then
      printf 'left out of result.json, since it is not like "name": 1: %q\n' "$line" >&2
    fi
  done
}

# What is told of an attempt that has ended well; its being there makes the outputs complete.
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
if [[ -e $complete/result.json ]]; then done_before; fi

export SCENARIO=$scenario INPUT OUTPUT=$attempt/output CHECKPOINT=$batch/checkpoints/$scenario STATS=/tmp/stats
mkdir -p "$OUTPUT" "$batch/results"
attempts=$(find "$batch/attempts/$scenario" -mindepth 1 -maxdepth 1 -type d | wc -l)
echo "scenario $scenario, attempt $attempts, on $NODE" | tee "$attempt/log.txt"

# The log is written beside the outputs too: that of a pod goes with its node.
exec 3> >(exec tee -a "$attempt/log.txt")
writer=$!
if [[ -z $told ]]; then
  "$@" >&3 2>&1 &
  running=$!
fi
code=143
while [[ -n $running ]]; do
  code=0
  wait "$running" || code=$?
  if ! kill -0 "$running" 2>/dev/null; then running=''; fi
done
if ((code != 0)); then leave "$([[ -n $told ]] && echo EVICTED || echo FAILED)" "$code"; fi
close_log
result >"$attempt/result.json"
# Who deletes a scenario's blobs to have it done again leaves their folders, which Azure keeps.
if [[ -d $complete ]]; then find "$complete" -type d -empty -delete; fi
# Fails where another attempt was first: then that one counts.
if ! mv -T "$attempt" "$complete"; then
  rm -rf "$attempt"
  if [[ -e $complete/result.json ]]; then done_before; fi
  echo "VERDICT: FAIL scenario=$scenario its outputs could not be put in place"
  exit 1
fi
rm -rf "$CHECKPOINT"
rmdir --ignore-fail-on-non-empty "$batch/attempts/$scenario" || true # where no earlier attempt is left
echo "VERDICT: PASS scenario=$scenario attempts=$attempts seconds=$(($(date +%s) - begun))"
