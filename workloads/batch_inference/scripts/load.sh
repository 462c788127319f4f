#!/usr/bin/env bash
# The load generator: waits for the server, has it answer the batch, keeps the results, and ends the server by its own end.
# Usage: load.sh OPTION..., as `vllm bench serve` takes them.
# Reads: TOGETHER, a folder of both containers; PORT, the server's; PROMPTS, their number; RESULT, the file of results. One
# that is there is told again, and nothing is made twice.
# Exit code: 0 if every prompt was answered.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
me=load-generator other=vllm
# shellcheck source=workloads/batch_inference/scripts/together.sh
. "$here/together.sh"

# Asks for the server's health; by bash alone, since images differ in what they have for HTTP.
healthy() {
  exec 3<>"/dev/tcp/127.0.0.1/$PORT"
  printf 'GET /health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' >&3
  read -r -t 10 _ status _ <&3
  [[ $status == 200 ]]
}

until_healthy() {
  until (healthy) 2>/dev/null; do sleep 1; done
}

# with_server COMMAND...: runs it, and fails as soon as the server has ended.
with_server() {
  local code=0
  beside "$@" || code=$?
  if $left_alone; then
    echo "the server has ended; the log of container $other of this pod tells why" >&2
    exit 1
  fi
  return "$code"
}

if [[ -s $RESULT ]]; then
  echo "an earlier run has made these results, which are not made again; another number as option \`run\` makes them anew"
else
  echo "waiting until the server has its model"
  with_server until_healthy
  part=$RESULT.$HOSTNAME.part
  mkdir -p "${RESULT%/*}"
  with_server vllm bench serve "$@" --save-result --result-dir "${RESULT%/*}" --result-filename "${part##*/}"
  python3 "$here/report.py" --check "$PROMPTS" "$part"
  mv "$part" "$RESULT"
fi
python3 "$here/report.py" "$RESULT"
echo "results: $RESULT"
