#!/usr/bin/env bash
# The server, until the load generator has ended.
# Usage: serve.sh MODEL OPTION..., as `vllm serve` takes them. Reads TOGETHER, a folder of both containers.
# Exit code: 0 once the load generator has ended, which says by its own how; else the server's, and never 0.
set -euo pipefail

me=vllm other=load-generator
# shellcheck source=workloads/batch_inference/scripts/together.sh
. "$(dirname "${BASH_SOURCE[0]}")/together.sh"

code=0
beside vllm serve "$@" || code=$?
if $left_alone; then exit 0; fi
echo "the server has ended before the batch, with exit code $code" >&2
exit $((code == 0 ? 1 : code))
