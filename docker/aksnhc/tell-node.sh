#!/usr/bin/env bash
# Tells this node's object what its check has found: a node that failed gets the taint aznhc=failed, of TAINT_EFFECT; the
# annotation aznhc-verdict has the verdict, aznhc-results that and the log. Where all was checked (ALL=true), aznhc-checked
# says when, and a node that passed loses the taint; what nobody knows changes no taint.
# Usage: NODE_NAME=... TAINT_EFFECT=... [ALL=true] tell-node.sh CODE VERDICT LOG
# Exit code: 1 where something could not be told, which is printed with what mends it.
set -uo pipefail

trap '' TERM # a job that begins anew ends its pods: what is begun is told
code=$1 verdict=$2 log=$3
readonly MOST_BYTES=16384 # of the log; all annotations of an object may have 256 KiB
readonly TAINT=aznhc

say() {
  echo "$*" >&2
}

# Runs kubectl, at most three times: `kubectl taint` writes the list of taints that it has read. If another taint was set in
# between, the admission policy refuses that list. Prints the last error with what is allowed.
change() {
  local said tries
  for tries in 1 2 3; do
    ((tries == 1)) || sleep "${PAUSE_S:-1}"
    said=$(kubectl "$@" 2>&1) && return 0
  done
  case $said in
    *NotFound* | *"not found"*) say "ERROR: node $NODE_NAME is not there any more: nothing of it can be told" ;;
    *orbidden*)
      say "ERROR: the check may not change node $NODE_NAME: $said"
      say "  allowed: an account that may get and patch nodes, of a pod on this very node"
      say "  fix:     pulumi config set --path operators.nodeHealth.enabled true && pulumi up"
      ;;
    *) say "ERROR: node $NODE_NAME was not told: $said" ;;
  esac
  return 1
}

now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
results=$(printf '%s\n%s' "$verdict" "$(tail -c "$MOST_BYTES" "$log" | LC_ALL=C tr -cd '\11\12\40-\176')")
found=(aznhc-verdict="$verdict" aznhc-results="$results")
[[ ${ALL:-} != true ]] || found+=(aznhc-checked="$now")

# The taint first: a job that begins anew may end this at any moment.
if ((code == 1)); then
  change taint nodes "$NODE_NAME" --overwrite "$TAINT=failed:$TAINT_EFFECT" || exit 1
  echo "Node $NODE_NAME has the taint $TAINT=failed:$TAINT_EFFECT"
elif ((code == 0)) && [[ ${ALL:-} == true ]]; then
  if kubectl get node "$NODE_NAME" -o 'jsonpath={.spec.taints[*].key}' | tr ' ' '\n' | grep -qx "$TAINT"; then
    change taint nodes "$NODE_NAME" "$TAINT-" || exit 1
    echo "Node $NODE_NAME has passed: its taint $TAINT is gone"
  fi
  found+=(aznhc-failed-)
fi
change annotate node "$NODE_NAME" --overwrite "${found[@]}" || exit 1
