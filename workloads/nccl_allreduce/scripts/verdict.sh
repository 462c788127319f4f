#!/usr/bin/env bash
# Judges the output of nccl-tests with NCCL_DEBUG=INFO and prints one line: VERDICT: PASS or FAIL, why, and the numbers.
# Usage: NODES=2 BUSBW_FLOOR_GBS=400 BUSBW_EXPECTED_GBS=450 verdict.sh LOG
# The floor decides; what is expected of a healthy fabric, where it is known (else empty), is printed beside it.
# Exit code: 0 pass; 1 too slow, wrong results, or the wrong transport; 2 no result to judge.
set -euo pipefail

log=$1

# Of the largest message: bytes, the better bus bandwidth of out-of-place and in-place (GB/s), and wrong values in all rows.
# Columns of nccl-tests: size count type redop root | time algbw busbw #wrong | time algbw busbw #wrong (#wrong may be N/A).
result=$(awk '
  $1 ~ /^[0-9]+$/ && NF == 13 && $6 $7 $8 ~ /^[0-9.]+$/ {
    wrong += $9 + $13
    if ($1 + 0 >= size) { size = $1 + 0; busbw = $8 > $12 ? $8 : $12 }
  }
  END { if (size) printf "%.0f %s %d", size, busbw, wrong }' "$log")

transport=none # within one node NCCL needs no network
if grep -Eq 'NET/Socket|Using network Socket' "$log"; then
  transport=NET/Socket
elif grep -Eq 'via NET/IB|Using network IB' "$log"; then
  transport=NET/IB
fi

verdict() {
  local code=$1 text=$2 numbers=""
  if [[ -n $result ]]; then
    numbers="; busbw=$busbw GB/s floor=$BUSBW_FLOOR_GBS GB/s${BUSBW_EXPECTED_GBS:+ expected=$BUSBW_EXPECTED_GBS GB/s}"
    numbers+=" size=$size B nodes=$NODES transport=$transport"
  fi
  echo "VERDICT: $text$numbers"
  exit "$code"
}

[[ -n $result ]] || verdict 2 "FAIL no all_reduce_perf result in the output"
read -r size busbw wrong <<<"$result"

((wrong == 0)) || verdict 1 "FAIL $wrong wrong values in the results"
if ((NODES > 1)); then
  case $transport in
    NET/IB) ;;
    NET/Socket) verdict 1 "FAIL NCCL fell back to TCP (NET/Socket) between nodes" ;;
    *) verdict 1 "FAIL nothing shows that NCCL used InfiniBand (no NET/IB; is NCCL_DEBUG=INFO set?)" ;;
  esac
fi
awk -v busbw="$busbw" -v floor="$BUSBW_FLOOR_GBS" 'BEGIN { exit !(busbw >= floor) }' ||
  verdict 1 "FAIL bus bandwidth is below the floor of this VM size and node count"
verdict 0 "PASS"
