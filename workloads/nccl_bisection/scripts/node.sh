#!/usr/bin/env bash
# A worker: keeps the name of its node, of which ranks know nothing (ssh brings no environment), where links.sh reads it.
# Reads: NODE_NAME.
set -euo pipefail

echo "$NODE_NAME" >/etc/node-name
exec bash "$(dirname "${BASH_SOURCE[0]}")/worker.sh"
