#!/usr/bin/env bash
# Runs the server until the load generator has ended.
# Usage: serve.sh MODEL OPTION..., arguments of `vllm serve`. Reads TOGETHER, a folder of both containers.
# Exit code: 0 if the load generator ended first, with any exit code; otherwise the server's, but never 0.
set -euo pipefail

me=vllm other=load-generator
# shellcheck source=workloads/batch_inference/scripts/together.sh
. "$(dirname "${BASH_SOURCE[0]}")/together.sh"

code=0
run_while_other_runs vllm serve "$@" || code=$?
if $other_has_ended; then exit 0; fi
echo "the server ended before the batch, with exit code $code" >&2
exit $((code == 0 ? 1 : code))
