#!/usr/bin/env bash
# Runs the load generator: waits for the server, sends the batch, and stores the results. The server stops when this script ends.
# Usage: load.sh OPTION..., options of `vllm bench serve`.
# Reads: TOGETHER, a folder of both containers; PORT of the server; PROMPTS, their number; RESULT, the file of results. If that file
# exists, the script only prints it.
# Exit code: 0 if all prompts were answered.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
me=load-generator other=vllm
# shellcheck source=workloads/batch_inference/scripts/together.sh
. "$here/together.sh"

# Requests the server's health with bash only, because not all images have an HTTP client.
healthy() {
  exec 3<>"/dev/tcp/127.0.0.1/$PORT"
  printf 'GET /health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' >&3
  read -r -t 10 _ status _ <&3
  [[ $status == 200 ]]
}

until_healthy() {
  until (healthy) 2>/dev/null; do sleep 1; done
}

# with_server COMMAND...: runs a command, and fails as soon as the server has ended.
with_server() {
  local code=0
  run_while_other_runs "$@" || code=$?
  if $other_has_ended; then
    echo "the server has ended; see the log of container $other of this pod" >&2
    exit 1
  fi
  return "$code"
}

if [[ -s $RESULT ]]; then
  echo "results of an earlier run exist; to run again, set option \`run\` to another number"
else
  echo "waiting until the server has loaded its model"
  with_server until_healthy
  part=$RESULT.$HOSTNAME.part
  mkdir -p "${RESULT%/*}"
  with_server vllm bench serve "$@" --save-result --result-dir "${RESULT%/*}" --result-filename "${part##*/}"
  python3 "$here/report.py" --check "$PROMPTS" "$part"
  mv "$part" "$RESULT"
fi
python3 "$here/report.py" "$RESULT"
echo "results: $RESULT"
