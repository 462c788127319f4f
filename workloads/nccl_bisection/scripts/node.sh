#!/usr/bin/env bash
# Runs in each worker: writes the name of its node to a file for links.sh, because ssh does not pass the environment to ranks.
# Reads: NODE_NAME.
set -euo pipefail

echo "$NODE_NAME" >/etc/node-name
exec bash "$(dirname "${BASH_SOURCE[0]}")/worker.sh"
