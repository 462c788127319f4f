#!/usr/bin/env bash
# Writes a check's result to the Node object. A failed node gets the taint aznhc=failed with TAINT_EFFECT. The
# annotation aznhc-verdict has the verdict, aznhc-results also the log. After a full check (ALL=true), aznhc-checked has
# the time, and a node that passed loses the taint. An unknown result changes no taint.
# Usage: NODE_NAME=... TAINT_EFFECT=... [ALL=true] update-node.sh CODE VERDICT LOG
# Exit code: 1 if the Node could not be changed; prints the error with its fix.
set -uo pipefail

trap '' TERM # a restarting job ends its pods, but the update must finish
code=$1 verdict=$2 log=$3
readonly MOST_BYTES=16384 # of the log; all annotations of an object may have 256 KiB
readonly TAINT=aznhc

log_error() {
  echo "$*" >&2
}

# Runs kubectl, at most three times: `kubectl taint` writes the list of taints that it has read, and the admission
# policy rejects that if another taint was set in between. Prints the last error with its fix.
change() {
  local output tries
  for tries in 1 2 3; do
    ((tries == 1)) || sleep "${PAUSE_S:-1}"
    output=$(kubectl "$@" 2>&1) && return 0
  done
  case $output in
    *NotFound* | *"not found"*) log_error "ERROR: node $NODE_NAME does not exist any more, so its result is not stored" ;;
    *orbidden*)
      log_error "ERROR: the check is not allowed to change node $NODE_NAME: $output"
      log_error "  allowed: a service account that may get and patch nodes, in a pod on the same node"
      log_error "  fix:     pulumi config set --path operators.nodeHealth.enabled true && pulumi up"
      ;;
    *) log_error "ERROR: node $NODE_NAME could not be changed: $output" ;;
  esac
  return 1
}

now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
results=$(printf '%s\n%s' "$verdict" "$(tail -c "$MOST_BYTES" "$log" | LC_ALL=C tr -cd '\11\12\40-\176')")
found=(aznhc-verdict="$verdict" aznhc-results="$results")
[[ ${ALL:-} != true ]] || found+=(aznhc-checked="$now")

# The taint is first, because a restarting job may end this pod at any moment.
if ((code == 1)); then
  change taint nodes "$NODE_NAME" --overwrite "$TAINT=failed:$TAINT_EFFECT" || exit 1
  echo "Node $NODE_NAME has the taint $TAINT=failed:$TAINT_EFFECT"
elif ((code == 0)) && [[ ${ALL:-} == true ]]; then
  if kubectl get node "$NODE_NAME" -o 'jsonpath={.spec.taints[*].key}' | tr ' ' '\n' | grep -qx "$TAINT"; then
    change taint nodes "$NODE_NAME" "$TAINT-" || exit 1
    echo "Node $NODE_NAME has passed: removed its taint $TAINT"
  fi
  found+=(aznhc-failed-)
fi
change annotate node "$NODE_NAME" --overwrite "${found[@]}" || exit 1
