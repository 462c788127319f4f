#!/usr/bin/env bash
# Judges the log of `nhc -a -v` and prints one line: VERDICT: PASS, FAIL or UNKNOWN, why, and the numbers.
# Usage: NODE_NAME=... verdict.sh LOG CONFIGURATION
# Exit code: 0 every check passed; 1 a check found a fault; 2 nobody knows, because a check could not run.
# Usage: verdict.sh --failed LOG
# Prints the checks that found a fault, a line each, as the configuration has them.
set -euo pipefail

if [[ $1 == --failed ]]; then
  awk -F '"' '
    /^Running check: / { check = $2 }
    /^ERROR: *nhc: *Health check failed: / && !/Code: NHCNA/ && check != "" { print check; check = "" }' "$2"
  exit
fi

log=$1 configuration=$2

wanted=$(grep -c '^ *[^#]*||' "$configuration" || true)
ran=$(grep -c 'Running check:' "$log" || true)

# aznhc marks what is no fault of the node by "FaultCode: NHCNA" (one test spells it "FauleCode"); a check that the image
# lacks shows as bash's "command not found". Some tests hand `-e` or `\t` to what writes the log, which prints them as they are.
failures=$(sed -nE 's/^ERROR: *nhc: *Health check failed: *((-e|\\t) *)*//p' "$log")
faults=$(grep -v 'Code: NHCNA' <<<"$failures" || true)
not_run=$(
  grep 'Code: NHCNA' <<<"$failures" || true
  sed -n 's/.*\(check_[a-z0-9_]*\): command not found.*/\1 is not in this image/p' "$log"
)

# Prints its arguments' first line, and how many more there are.
first() {
  local count
  count=$(grep -c . <<<"$1")
  head -n 1 <<<"$1" | tr -d '\n'
  ((count == 1)) || printf ' (and %d more)' $((count - 1))
}

verdict() {
  local code=$1 text=$2
  echo "VERDICT: $text; node=$NODE_NAME checks=$ran/$wanted"
  exit "$code"
}

[[ -z $faults ]] || verdict 1 "FAIL $(first "$faults")"
[[ -z $not_run ]] || verdict 2 "UNKNOWN $(first "$not_run")"
((wanted > 0)) || verdict 2 "UNKNOWN there is no check in $configuration"
((ran == wanted)) || verdict 2 "UNKNOWN nhc ended before all checks had run"
verdict 0 PASS
